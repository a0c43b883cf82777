import CachePolicy
import DurableState
import HLS
import HTTP
import Library
import Logging
import Model
import Numbers
import Reactor
import Routing
import Store
import URISyntax

/// The store accesses of downloads: checking for pieces and pinning them.
extension DownloadTable {
    func isPinned(_ download: Download) -> Bool {
        services.store.pin(of: download.id.number) != nil
    }

    /// Pins the title against eviction, including objects that are yet to be stored.
    ///
    /// What was pinned for it stays pinned: it may have been complete before.
    func pin(_ download: Download) {
        _ = pin(download, pinnedKeys(of: download))
    }

    /// The keys that the pin of the title names.
    func pinnedKeys(of download: Download) -> [ObjectKey] {
        services.store.pin(of: download.id.number)?.keys ?? []
    }

    /// Returns the resource of a piece, or of the file that it is a part of.
    func resource(of piece: DownloadPiece, _ download: Download) -> Resource {
        services.names.resource(
            piece.url, download.session, role: piece.role, forwarding: Fields())
    }

    /// Returns the stored object of a piece; nil without one.
    private func object(of piece: DownloadPiece, _ download: Download) -> StoredObject? {
        services.store.peek(resource(of: piece, download).key)
    }

    /// The keys of the pieces of its plan.
    func pieceKeys(of download: Download) -> [ObjectKey] {
        download.plan.pieces.map { resource(of: $0, download).key }
    }

    /// Also pins the resources that a complete title shares with others, now that they are known.
    ///
    /// - Returns: false if that cannot be saved; the download has failed then.
    func pinAll(of download: Download) -> Bool {
        let keys = pieceKeys(of: download)
        let former = download.isPinnedBefore ? pinnedKeys(of: download) : []
        return pin(download, former + keys + download.playlists)
    }

    private func pin(_ download: Download, _ keys: [ObjectKey]) -> Bool {
        if download.isPinnedBefore, !isPinned(download) {
            // Unpinned since its order: this pin is the download's own.
            download.isPinnedBefore = false
            save(download)
        }
        do throws(StateFault) {
            try services.store.pin(
                title: download.id.number, url: download.order.url.normalisedForKey,
                keys: Array(Set(keys)))
            return true
        } catch {
            download.fail("the title cannot be pinned: \(error)")
            return false
        }
    }

    /// Returns the length of the resource of a piece that is stored; nil if it is unknown.
    func length(of piece: DownloadPiece, _ download: Download) -> Int64? {
        object(of: piece, download)?.total
    }

    /// True if the stored resource of a piece has a validator, by which its origin can tell that it
    /// is unchanged.
    func hasValidator(_ piece: DownloadPiece, of download: Download) -> Bool {
        guard let object = object(of: piece, download),
            let fields = ObjectFacts.of(object)?.head.fields
        else { return false }
        return fields.contains(.etag) || fields.contains(.lastModified)
    }

    /// The stored bytes of the pieces in flight.
    struct PartsUnderWay {
        var bytes: Int64 = 0
        /// Of these, the bytes fetched since the request.
        var brought: Int64 = 0
        /// Their sum as a fraction of pieces.
        var share = 0.0
    }

    func partsUnderWay(of download: Download) -> PartsUnderWay {
        var parts = PartsUnderWay()
        for index in download.running.keys where download.plan.pieces.indices.contains(index) {
            let (bytes, length) = present(index, of: download)
            parts.bytes += bytes
            parts.brought += max(0, bytes - (download.presentBefore[index] ?? 0))
            if let length, length > 0 { parts.share += Double(bytes) / Double(length) }
        }
        return parts
    }

    /// Returns the stored bytes of a piece from its start on, and its length if known.
    func present(_ index: Int, of download: Download) -> (bytes: Int64, length: Int64?) {
        let piece = download.plan.pieces[index]
        guard let object = object(of: piece, download), !object.isDiscarded else {
            return (0, piece.range.map { Int64($0.count) })
        }
        let start = piece.range?.lowerBound ?? 0
        let end = [piece.range?.upperBound, object.total].compactMap { $0 }.min()
        let reached = object.spans.contiguousEnd(from: start)
        return (max(0, min(reached, end ?? reached) - start), end.map { max(0, $0 - start) })
    }

    /// True if the entry is stored, whole or in part.
    func holdsEntry(of download: Download) -> Bool {
        services.keys.entryKeys(download.order.url, of: download.session).contains { key in
            services.store.peek(key).map { !$0.isDiscarded } ?? false
        }
    }

    /// True if the stored entry is a playlist; blocks on the disk.
    func holdsPlaylist(_ download: Download) -> Bool {
        let url = download.order.url
        return services.keys.entryKeys(url, of: download.session).contains { key in
            guard let object = services.store.peek(key), !object.isDiscarded,
                let facts = ObjectFacts.of(object)
            else { return false }
            if facts.head.isPlaylist { return true }
            // The response to a range request was not examined on arrival.
            let count = Int(
                min(object.spans.contiguousEnd(from: 0), Int64(PlaylistDetector.prefixLength)))
            return (try? readBody(of: object, count: count)).map(
                PlaylistDetector.looksLikePlaylist) ?? false
        }
    }

    /// True if every playlist that was read is in the store; blocks on the disk.
    ///
    /// With `orUnreadable`, one whose file cannot be opened at the moment counts as stored.
    func holdsPlaylists(of download: Download, orUnreadable: Bool = false) -> Bool {
        let store = services.store
        return download.playlists.allSatisfy { key in
            guard let object = store.peek(key) else {
                return orUnreadable && store.isUnreadable(key)
            }
            return object.isComplete && !object.isDiscarded
        }
    }

    /// Returns the pieces that are missing or incomplete in the store; blocks on the disk.
    ///
    /// Without `orUnreadable`, one whose file cannot be opened at the moment is not missing.
    func missing(in download: Download, orUnreadable: Bool = true) -> [Int] {
        // Only the answer to the first part of a file tells how many there are.
        if download.isFirstPart { return Array(download.plan.pieces.indices) }
        return download.plan.pieces.indices.filter { index in
            let piece = download.plan.pieces[index]
            let key = resource(of: piece, download).key
            guard let object = services.store.peek(key) else {
                return orUnreadable || !services.store.isUnreadable(key)
            }
            guard !object.isDiscarded else { return true }
            guard let range = piece.range, !range.isEmpty else { return !object.isComplete }
            // The origin may have less than its playlist names, also since another part was fetched.
            return !object.spans.holds(range, ofTotal: object.total)
        }
    }

    /// True if a complete download is known to be still stored and pinned; blocks on the disk.
    ///
    /// False for one of an earlier run, whose pieces are known once its playlists are read again.
    func isWhole(_ download: Download) -> Bool {
        !download.plan.pieces.isEmpty && isPinned(download) && holdsPlaylists(of: download)
            && missing(in: download).isEmpty
    }

    /// Fails complete downloads that have lost objects that their pins name, or are not pinned and
    /// were cleared, so that no listing calls them complete; blocks on the disk.
    func note(removedFrom titles: Set<UInt64>) {
        let complete = titles.compactMap { downloads[SessionID($0)] }.filter {
            $0.state == .complete
        }
        // The pieces of downloads of earlier runs are not known; their losses follow from the keys
        // of their pins.
        let former = complete.filter(\.plan.pieces.isEmpty)
        let rests = services.store.pinnedRests(of: Set(former.map(\.id.number)))
        for download in complete where countLosses(of: download, rests[download.id.number]) {
            download.fail(DownloadLosses.reason)
        }
    }

    /// Subtracts what a complete download has lost from its figures.
    ///
    /// - Parameters:
    ///   - download: a complete one.
    ///   - rest: what is left of its pins; not used if its pieces are known.
    /// - Returns: false if it has lost nothing.
    private func countLosses(of download: Download, _ rest: PinnedRest?) -> Bool {
        guard download.plan.pieces.isEmpty else {
            // A disk that fails to read at the moment says nothing about losses.
            let lost = missing(in: download, orUnreadable: false)
            guard !lost.isEmpty || !holdsPlaylists(of: download, orUnreadable: true) else {
                return false
            }
            for index in lost { download.present[index] = nil }
            return true
        }
        // Without a pin, nothing tells what belonged to it besides its own objects.
        if !isPinned(download), services.store.mark(ofTitle: download.id.number) == nil {
            (download.kept.done, download.kept.bytes) = (0, 0)
            return true
        }
        // Which piece a lost object belongs to is unknown until the playlists are read again: the
        // figures shrink in proportion.
        guard let rest, !rest.isWhole else { return false }
        download.kept.done = Int(rest.share(of: Int64(download.kept.pieces)))
        download.kept.bytes = rest.share(of: download.kept.bytes)
        return true
    }

    /// Reports a complete download.
    func finished(_ download: Download) {
        services.log.notice(
            "a download is complete",
            metadata: [
                "title": "\(download.id.text)", "pieces": "\(download.plan.pieces.count)",
                "bytes": "\(download.kept.bytes)",
            ])
    }
}

extension Download {
    /// The bytes of the complete pieces.
    package var presentBytes: Int64 { present.values.saturatedSum() }

    /// Completes a checked download once all of it is synced, so that neither a kill nor a power
    /// cut can take any of it and the next run need not check it.
    ///
    /// - Parameter losses: the store's count of losses before the check.
    func awaitDisk(since losses: Int) {
        let bound = LoopBound(self, to: table.loop)
        table.services.store.makeCertain { [run] isCertain in
            bound.enqueue { download, _ in
                guard download.run == run, download.state == .checking else { return }
                download.complete(isCertain: isCertain, since: losses)
            }
        }
    }

    private func complete(isCertain: Bool, since losses: Int) {
        guard isCertain else {
            return wait(for: "the disk does not take what was fetched; check it, or make room")
        }
        // The disk may have failed to sync some of it, or a purge may have removed it.
        guard
            table.services.store.losses == losses
                || (table.holdsPlaylists(of: self) && table.missing(in: self).isEmpty)
        else {
            state = .running
            table.wake()
            // Quiet hours may have begun meanwhile: then the next look has it wait.
            if table.obstacle() == nil { pump() }
            return
        }
        if refresh != nil { return table.finishRefresh(self) }
        end(as: .complete)
        table.finished(self)
    }
}
