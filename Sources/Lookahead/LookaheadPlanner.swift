import HLS
import Numbers
package import URISyntax

/// Decides what to fetch ahead of active players: the next segments of what they play, with the
/// keys and initialization sections that these need.
///
/// Pure: it takes players' requests, the contents of lists and the results of fetches, each with
/// the time in seconds of any monotonic clock, and returns actions. It follows seeks and changes of
/// rendition, since it starts from the last segment requested of each kind of track; it stops with
/// its player, and never fetches a segment that no list has named.
package struct LookaheadPlanner: Sendable {
    package var limits: LookaheadLimits

    struct List: Sendable {
        var picture: CompactMediaList
        var kind: TrackKind
        var mode: LookaheadMode
        /// The number of segments from the list's start that may be fetched ahead; nil for all.
        var reach: Int?
        /// The announced bits per second.
        var bandwidth: Int?
        var bytes: Int64 = 0
        var seconds = 0.0
        /// Media sequence numbers of segments that are fetched, present or failed.
        var finished: Set<Int> = []
        /// The same for keys and initialization sections; of a live list, those of its last window
        /// and those that were fetched since.
        var finishedStructure: Set<MediaPiece> = []
        var usedAt: Double

        /// Returns the bytes per second of playing time.
        func rate(_ hints: PlayerHints?) -> Double? {
            if seconds > 0, bytes > 0 { return Double(bytes) / seconds }
            return (hints?.bitRate ?? bandwidth.map(Double.init)).map { $0 / 8 }
        }
    }

    struct Track: Sendable {
        var list: ListID
        /// The media sequence number of the segment last requested.
        var sequence: Int
        /// A decaying count of requests that did not follow the previous one.
        var jumps = 0.0
    }

    struct Player: Sendable {
        var tracks: [TrackKind: Track] = [:]
        var askedAt: Double
        var hints: PlayerHints?
        /// The next request announced by the player.
        var announced: (piece: MediaPiece, list: ListID)?
        var hasStopped = false
    }

    struct Running: Sendable {
        let player: PlayerID
        let list: ListID
        let piece: MediaPiece
        let sequence: Int?
        /// The player's last request in that list when the fetch was started.
        let begunAt: Int?
        var isCancelled = false
    }

    var lists: [ListID: List] = [:]
    var players: [PlayerID: Player] = [:]
    var running: [AheadID: Running] = [:]
    var line = Goodput()
    var lastID: UInt64 = 0

    /// The estimated memory of the pictures of all lists in bytes.
    private var pictureBytes = 0

    /// The maximum number of lists to keep; the least recently used is dropped.
    static let mostLists = 256
    /// The maximum of `pictureBytes`; the least recently used list is dropped, except the one read
    /// last.
    private let mostBytes: Int

    package init(limits: LookaheadLimits = LookaheadLimits(), mostBytes: Int = 64 << 20) {
        self.limits = limits
        self.mostBytes = mostBytes
    }

    /// True if the passing of time alone may change the plan: while a fetch runs.
    package var needsTicks: Bool { !running.isEmpty }

    /// The goodput of fetches in bytes per second; nil before the first.
    package var bytesPerSecond: Double? { line.bytesPerSecond }

    /// Records the goodput of finished fetches of any kind.
    package mutating func measured(bytes: Int64, seconds: Double) {
        line.add(bytes: bytes, seconds: seconds)
    }

    // MARK: Lists

    /// The properties of a list, and the limits for fetching from it.
    package struct ListTerms: Sendable {
        package var kind: TrackKind
        package var mode: LookaheadMode
        package var bandwidth: Int?
        package var reach: Int?

        package init(
            kind: TrackKind = .picture, mode: LookaheadMode, bandwidth: Int? = nil,
            reach: Int? = nil
        ) {
            self.kind = kind
            self.mode = mode
            self.bandwidth = bandwidth
            self.reach = reach
        }
    }

    /// Records a list that was read, for the first time or again.
    package mutating func saw(
        _ picture: CompactMediaList, of id: ListID, _ terms: ListTerms, at now: Double
    ) -> [LookaheadAction] {
        var list =
            lists[id] ?? List(picture: picture, kind: terms.kind, mode: terms.mode, usedAt: now)
        if let last = picture.sequences?.upperBound, let known = list.picture.sequences?.upperBound,
            last < known
        {
            // The numbering restarted: the finished numbers belong to other segments.
            list.finished = []
        } else if let first = picture.sequences?.lowerBound, picture.isLive {
            list.finished = list.finished.filter { $0 >= first }
        }
        // A live list may name another key for each segment.
        if picture.isLive, !list.finishedStructure.isEmpty {
            list.finishedStructure.formIntersection(picture.structures)
        }
        pictureBytes += picture.byteCount - (lists[id]?.picture.byteCount ?? 0)
        list.picture = picture
        list.kind = terms.kind
        list.mode = terms.mode
        list.reach = terms.reach
        list.bandwidth = terms.bandwidth
        list.usedAt = now
        lists[id] = list
        forgetLists(besides: id)
        return plan(session: id.session, at: now)
    }

    /// True if the planner has a list: it drops the least recently used ones.
    package func knows(_ id: ListID) -> Bool { lists[id] != nil }

    /// Stops look-ahead for a list.
    package mutating func forget(_ id: ListID) {
        guard let list = lists.removeValue(forKey: id) else { return }
        pictureBytes -= list.picture.byteCount
    }

    private mutating func forgetLists(besides kept: ListID) {
        while lists.count > Self.mostLists || pictureBytes > mostBytes {
            // Only the key leaves the expression, so that the lists are not copied.
            let oldest = lists.lazy.filter { $0.key != kept }
                .min { $0.value.usedAt < $1.value.usedAt }?.key
            guard let oldest else { return }
            forget(oldest)
        }
    }

    // MARK: Players

    /// Records that a player requested a resource, or a part that begins at `start`.
    package mutating func read(
        _ url: AbsoluteURL, from start: Int64 = 0, by id: PlayerID, _ hints: PlayerHints? = nil,
        at now: Double
    ) -> [LookaheadAction] {
        guard let (listID, index) = place(of: url, from: start, by: id) else {
            // A list or a key: it shows only that the player is active.
            players[id]?.askedAt = now
            return []
        }
        lists[listID]?.usedAt = now
        guard let list = lists[listID] else { return [] }
        var player = players[id] ?? Player(askedAt: now)
        let sequence = list.picture.sequence(at: index)
        var track = player.tracks[list.kind] ?? Track(list: listID, sequence: sequence - 1)
        // One step back is a retry; a change of rendition often starts one back.
        let step = sequence - track.sequence
        track.jumps = track.jumps * 0.7 + (step < -1 || step > 2 ? 1 : 0)
        track.list = listID
        track.sequence = sequence
        player.tracks[list.kind] = track
        player.askedAt = now
        player.hints = hints ?? player.hints.map(Self.fading)
        player.hasStopped = false
        player.announced = announced(hints, in: listID)
        players[id] = player
        lists[listID]?.finished.insert(sequence)
        forgetPlayers()
        return plan(id, at: now)
    }

    /// Returns the hints that remain valid when a request carries none.
    private static func fading(_ hints: PlayerHints) -> PlayerHints {
        var hints = hints
        hints.isStarving = false
        hints.hasStalled = false
        hints.nextObject = nil
        hints.nextRange = nil
        return hints
    }

    private func announced(_ hints: PlayerHints?, in list: ListID) -> (MediaPiece, ListID)? {
        guard let text = hints?.nextObject, let url = try? AbsoluteURL(text) else { return nil }
        return (MediaPiece(url, range: hints?.nextRange, role: .segment), list)
    }

    /// Returns the list and index of a segment; prefers lists that the player plays already.
    private func place(of url: AbsoluteURL, from start: Int64, by id: PlayerID) -> (ListID, Int)? {
        let inPlay = players[id]?.tracks.values.map(\.list) ?? []
        let others = lists.keys.filter { $0.session == id.session && !inPlay.contains($0) }
        for candidate in inPlay + others {
            if let index = lists[candidate]?.picture.index(of: url, from: start) {
                return (candidate, index)
            }
        }
        return nil
    }

    private mutating func forgetPlayers() {
        guard players.count > 4 * limits.players else { return }
        let oldest = players.min { $0.value.askedAt < $1.value.askedAt }
        if let oldest, !running.values.contains(where: { $0.player == oldest.key }) {
            players[oldest.key] = nil
        }
    }

    /// Records that a player aborted a body: it stopped, seeks or changes its rendition; its next
    /// request shows which.
    ///
    /// The abort counts only if no request followed; some players abort a body a few milliseconds
    /// before they request the next one, so this is best called a moment later.
    ///
    /// - Parameters:
    ///   - id: the player.
    ///   - url: the URL of the aborted body.
    ///   - then: when it was aborted.
    ///   - now: the current time.
    /// - Returns: the actions to take.
    package mutating func left(
        _ id: PlayerID, _ url: AbsoluteURL, since then: Double, at now: Double
    ) -> [LookaheadAction] {
        guard let player = players[id], player.askedAt <= then else { return [] }
        let isLast = player.tracks.values.contains { track in
            guard let picture = lists[track.list]?.picture else { return false }
            let index = picture.index(after: track.sequence) - 1
            return index >= 0 && picture.piece(at: index).url == url
        }
        guard isLast else { return [] }
        players[id]?.hasStopped = true
        return plan(id, at: now)
    }

    /// Records that the viewer of a session has gone on to another title: nothing is fetched for
    /// its players until their next requests.
    package mutating func movedOn(session: UInt64, at now: Double) -> [LookaheadAction] {
        for id in Array(players.keys) where id.session == session {
            players[id]?.hasStopped = true
        }
        return plan(session: session, at: now)
    }

    /// Replans as time passes; to be called about every second while `needsTicks`.
    package mutating func tick(at now: Double) -> [LookaheadAction] {
        Set(running.values.map(\.player)).flatMap { plan($0, at: now) }
    }

    // MARK: Fetches

    /// Records the end of a fetch.
    package mutating func ended(
        _ id: AheadID, _ result: AheadResult, at now: Double
    ) -> [LookaheadAction] {
        guard let fetch = running.removeValue(forKey: id) else { return [] }
        if result.bytes > 0 { line.add(bytes: result.bytes, seconds: result.seconds) }
        if result.ending != .cancelled {
            // A failed piece is left to the player's own request, which gets the error.
            if let sequence = fetch.sequence {
                lists[fetch.list]?.finished.insert(sequence)
                note(size: result.size, of: sequence, in: fetch.list)
            } else {
                lists[fetch.list]?.finishedStructure.insert(fetch.piece)
            }
        }
        return plan(fetch.player, at: now)
    }

    private mutating func note(size: Int64?, of sequence: Int, in id: ListID) {
        guard let size, size > 0, let list = lists[id] else { return }
        let index = list.picture.index(after: sequence) - 1
        guard index >= 0, list.picture.sequence(at: index) == sequence else { return }
        lists[id]?.bytes = list.bytes.addingSaturated(size)
        lists[id]?.seconds += list.picture.seconds(at: index)
    }
}
