// The refresh of a complete download: fetches the origin's present version beside the stored one.
//
// First the playlists are read without being stored, and what they name is fetched; then they are
// read into the store. So the stored version stays whole until the new one is, and if the refresh
// fails: the playlists that were replaced by then are stored again. Segments are immutable by
// convention: those of a playlist that the origin confirms with a 304 are not asked about, and
// those of any other are revalidated.
import HLS
import Library
import Playlists
import Posix
import Store
import URISyntax

extension Download {
    /// What a refresh does.
    enum RefreshStep: Sendable {
        /// Reads the playlists without storing them, and fetches what they name.
        case fetching
        /// Reads the playlists into the store.
        case storing
    }

    /// The result of a refresh.
    struct LastRefresh: Sendable, Equatable {
        let ended: WallTime
        /// Why the former version was kept; nil if the origin's is in the store.
        let failure: String?
    }

    /// True if a playlist came from the origin and is not stored yet.
    func isNew(_ playlist: FetchedPlaylist) -> Bool {
        refresh == .fetching && playlist.notStored != nil
    }

    /// Notes that the origin is to be asked about everything that a new playlist names.
    func noteUnconfirmed(_ media: MediaPlaylist) {
        var own = DownloadPlan()
        own.add(media, label: "", from: order.from, to: order.to)
        unconfirmed.formUnion(own.pieces.map(\.url))
    }

    /// True if a stored body is revalidated before it counts as present.
    ///
    /// Without a validator a revalidation would fetch the segment again.
    func mustConfirm(_ piece: DownloadPiece) -> Bool {
        guard unconfirmed.contains(piece.url) else { return false }
        return piece.role == nil || table.hasValidator(piece, of: self)
    }

    /// True while a playlist of a refresh may come that is stored at once.
    ///
    /// The refresh is not ended then: that playlist would replace the former one after all.
    var isStoringPlaylists: Bool { refresh == .storing && state == .planning }

    /// Begins to store the new playlists of a refresh, now that everything that they name is
    /// stored.
    ///
    /// - Returns: false if there are none.
    func storesNewPlaylists() -> Bool {
        guard refresh == .fetching, !newPlaylists.isEmpty else { return false }
        refresh = .storing
        // One that was confirmed just now may be new at this second reading.
        formerPlaylists = newPlaylists.union(playlists)
            .compactMap { table.services.store.peek($0) }.filter(\.isComplete)
        checks = 0
        start()
        return true
    }
}

extension Download.LastRefresh {
    /// Creates the result of a refresh that ends now.
    ///
    /// Its time is of another second than that of the one before, by which clients tell that
    /// another refresh has ended.
    init(endingAt now: WallTime, after former: Download.LastRefresh?, failure: String?) {
        let isSame = former?.ended.seconds == now.seconds
        self.init(ended: isSame ? now + .seconds(1 as Int64) : now, failure: failure)
    }
}
