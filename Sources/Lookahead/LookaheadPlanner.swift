import HLS
import Numbers
package import URISyntax

/// Decides what to fetch ahead of players that play: the next segments of what they play now, with
/// the keys and initialization sections that these need.
///
/// Pure: it is told what players asked for, what lists say and how fetches ended, each with the time
/// in seconds of any clock that runs on, and answers with actions. It follows seeks and changes of
/// rendition, since it goes by the last segment that was asked for of each kind of track; it stops
/// with its player, and knows no segment that no list has named.
package struct LookaheadPlanner: Sendable {
    package var limits: LookaheadLimits

    struct List: Sendable {
        var picture: MediaPicture
        var kind: TrackKind
        var mode: LookaheadMode
        /// Segments that may be fetched ahead from the list's start; nil for all.
        var reach: Int?
        /// Bits per second, as announced.
        var bandwidth: Int?
        var bytes: Int64 = 0
        var seconds = 0.0
        /// Fetched or found there, and what could not be had, by media sequence number.
        var settled: Set<Int> = []
        var settledStructure: Set<MediaPiece> = []
        var usedAt: Double

        /// Bytes that a second takes.
        func rate(_ hints: PlayerHints?) -> Double? {
            if seconds > 0, bytes > 0 { return Double(bytes) / seconds }
            return (hints?.bitRate ?? bandwidth.map(Double.init)).map { $0 / 8 }
        }
    }

    struct Track: Sendable {
        var list: ListID
        /// The media sequence number of the segment that was asked for last.
        var sequence: Int
        /// How often of late the next request was for another place than the next one.
        var jumps = 0.0
    }

    struct Player: Sendable {
        var tracks: [TrackKind: Track] = [:]
        var askedAt: Double
        var hints: PlayerHints?
        /// What the player said it will ask for next.
        var announced: (piece: MediaPiece, list: ListID)?
        var hasStopped = false
    }

    struct Running: Sendable {
        let player: PlayerID
        let list: ListID
        let piece: MediaPiece
        let sequence: Int?
        /// What its player had asked for last in that list when it was begun.
        let begunAt: Int?
        var isCancelled = false
    }

    var lists: [ListID: List] = [:]
    var players: [PlayerID: Player] = [:]
    var running: [AheadID: Running] = [:]
    var line = Goodput()
    var lastID: UInt64 = 0

    /// The most lists whose pictures are kept; those used last stay.
    static let mostLists = 256

    package init(limits: LookaheadLimits = LookaheadLimits()) {
        self.limits = limits
    }

    /// Whether time alone may bring a change: while anything runs.
    package var needsTicks: Bool { !running.isEmpty }

    /// Bytes per second that fetches ahead have got; nil before the first.
    package var bytesPerSecond: Double? { line.bytesPerSecond }

    /// What ended fetches of any kind got from the line.
    package mutating func measured(bytes: Int64, seconds: Double) {
        line.add(bytes: bytes, seconds: seconds)
    }

    // MARK: Lists

    /// What a list is and may have.
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

    /// A list was read, for the first time or again.
    package mutating func saw(
        _ picture: MediaPicture, of id: ListID, _ terms: ListTerms, at now: Double
    ) -> [LookaheadAction] {
        var list =
            lists[id] ?? List(picture: picture, kind: terms.kind, mode: terms.mode, usedAt: now)
        if let last = picture.sequences?.upperBound, let known = list.picture.sequences?.upperBound,
            last < known
        {
            // The numbers began anew: what is known of them is of other segments.
            list.settled = []
        } else if let first = picture.sequences?.lowerBound, picture.isLive {
            list.settled = list.settled.filter { $0 >= first }
        }
        list.picture = picture
        list.kind = terms.kind
        list.mode = terms.mode
        list.reach = terms.reach
        list.bandwidth = terms.bandwidth
        list.usedAt = now
        lists[id] = list
        forgetLists()
        return plan(session: id.session, at: now)
    }

    /// A list is not run ahead of any more.
    package mutating func forget(_ id: ListID) { lists[id] = nil }

    private mutating func forgetLists() {
        guard lists.count > Self.mostLists else { return }
        let oldest = lists.min { $0.value.usedAt < $1.value.usedAt }
        if let oldest { lists[oldest.key] = nil }
    }

    // MARK: Players

    /// A player asked for a resource, or a part that begins at `start`.
    package mutating func read(
        _ url: AbsoluteURL, from start: Int64 = 0, by id: PlayerID, _ hints: PlayerHints? = nil,
        at now: Double
    ) -> [LookaheadAction] {
        guard let (listID, index) = place(of: url, from: start, by: id) else {
            // A list or a key: a sign of life.
            players[id]?.askedAt = now
            return []
        }
        lists[listID]?.usedAt = now
        guard let list = lists[listID] else { return [] }
        var player = players[id] ?? Player(askedAt: now)
        let sequence = list.picture.sequence(at: index)
        var track = player.tracks[list.kind] ?? Track(list: listID, sequence: sequence - 1)
        // One behind is a retry; a change of rendition often starts one back.
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
        lists[listID]?.settled.insert(sequence)
        forgetPlayers(at: now)
        return plan(id, at: now)
    }

    /// What stays of a player's word when it says nothing with a request.
    private static func fading(_ hints: PlayerHints) -> PlayerHints {
        var hints = hints
        hints.isStarving = false
        hints.nextObject = nil
        hints.nextRange = nil
        return hints
    }

    private func announced(_ hints: PlayerHints?, in list: ListID) -> (MediaPiece, ListID)? {
        guard let text = hints?.nextObject, let url = try? AbsoluteURL(text) else { return nil }
        return (MediaPiece(url, range: hints?.nextRange, role: .segment), list)
    }

    /// The list that a segment stands in: one that the player plays already before others.
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

    private mutating func forgetPlayers(at now: Double) {
        guard players.count > 4 * limits.players else { return }
        let oldest = players.min { $0.value.askedAt < $1.value.askedAt }
        if let oldest, !running.values.contains(where: { $0.player == oldest.key }) {
            players[oldest.key] = nil
        }
    }

    /// A player cut off a body: it stopped, sought or changes its rendition; the next request tells.
    ///
    /// What was cut off counts only where nothing was asked for since; some players cut off a body a
    /// few milliseconds before they ask for the next one, so it is best told a moment later.
    ///
    /// - Parameters:
    ///   - id: who it was.
    ///   - url: whose body was cut off.
    ///   - then: when that was.
    ///   - now: the time.
    /// - Returns: what to do.
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

    /// Time has passed; to be called about every second while `needsTicks`.
    package mutating func tick(at now: Double) -> [LookaheadAction] {
        Set(running.values.map(\.player)).flatMap { plan($0, at: now) }
    }

    // MARK: Fetches

    /// A fetch has ended.
    package mutating func ended(
        _ id: AheadID, _ result: AheadResult, at now: Double
    ) -> [LookaheadAction] {
        guard let fetch = running.removeValue(forKey: id) else { return [] }
        if result.bytes > 0 { line.add(bytes: result.bytes, seconds: result.seconds) }
        if result.ending != .cancelled {
            // What failed is left to the player, which will be told why.
            if let sequence = fetch.sequence {
                lists[fetch.list]?.settled.insert(sequence)
                note(size: result.size, of: sequence, in: fetch.list)
            } else {
                lists[fetch.list]?.settledStructure.insert(fetch.piece)
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
