import HLS
import URISyntax

/// What players will need next, and what is done about it.
extension LookaheadPlanner {
    mutating func plan(session: UInt64, at now: Double) -> [LookaheadAction] {
        players.keys.filter { $0.session == session }.flatMap { plan($0, at: now) }
    }

    /// Brings what runs for a player in line with what it will need.
    mutating func plan(_ id: PlayerID, at now: Double) -> [LookaheadAction] {
        let wanted = self.wanted(id, at: now)
        var actions: [LookaheadAction] = []
        var busy: Set<MediaPiece> = []
        for (number, fetch) in running where fetch.player == id && !fetch.isCancelled {
            if wanted.contains(where: { $0.piece == fetch.piece }) || isStillAhead(fetch, at: now) {
                busy.insert(fetch.piece)
            } else {
                running[number]?.isCancelled = true
                actions.append(.cancel(number))
            }
        }
        let elsewhere = Set(running.values.filter { !$0.isCancelled }.map(\.piece))
        for want in wanted where busy.count < limits.parallel && !elsewhere.contains(want.piece) {
            lastID += 1
            let number = AheadID(lastID)
            running[number] = Running(
                player: id, list: want.list, piece: want.piece, sequence: want.sequence,
                begunAt: place(of: id, in: want.list))
            busy.insert(want.piece)
            actions.append(.fetch(number, want.piece, for: id))
        }
        return actions
    }

    /// Where a player is in a list: the media sequence number of what it asked for last.
    private func place(of id: PlayerID, in list: ListID) -> Int? {
        players[id]?.tracks.values.first { $0.list == list }?.sequence
    }

    /// Whether a player comes to what runs for it if it only plays on, however far it is run ahead
    /// of it now.
    ///
    /// A line that shows itself to be fast makes the depth less; what is under way by then would be
    /// asked for a second time, a moment after it was ended.
    private func isStillAhead(_ fetch: Running, at now: Double) -> Bool {
        guard let player = players[fetch.player], isActive(player), let begunAt = fetch.begunAt,
            fetch.sequence != nil || fetch.piece.role != .segment,
            // One that waits for what it plays needs the line for it.
            player.hints?.isStarving != true
        else { return false }
        return tracksInPlay(of: player, at: now).contains { track, list in
            // One back is a retry, as in a change of rendition.
            track.list == fetch.list && list.mode != .off && track.sequence >= begunAt - 1
                && track.sequence < fetch.sequence ?? .max
        }
    }

    /// Whether anything is fetched ahead of a player at all.
    private func isActive(_ player: Player) -> Bool {
        !player.hasStopped && isAmongTheLast(player)
    }

    /// What a player plays, with the lists it comes from: not what it jumps about in, nor what it has
    /// not asked for in a while.
    private func tracksInPlay(of player: Player, at now: Double) -> [(track: Track, list: List)] {
        player.tracks.compactMap { kind, track in
            guard let list = lists[track.list], list.kind == kind, track.jumps < 1.7 else {
                return nil
            }
            let longest = list.picture.count > 0 ? list.picture.seconds(at: 0) : 0
            guard now - player.askedAt <= max(limits.silence, 2 * longest) else { return nil }
            return (track, list)
        }
    }

    struct Want: Sendable {
        let piece: MediaPiece
        let list: ListID
        let sequence: Int?
        /// When it is needed, in seconds of playing time from what was asked for last.
        let due: Double
    }

    /// What a player will need, the earliest first; nothing once it has stopped.
    private func wanted(_ id: PlayerID, at now: Double) -> [Want] {
        guard let player = players[id], isActive(player) else { return [] }
        var wants = tracksInPlay(of: player, at: now).flatMap {
            self.wanted($0.track, $0.list, player)
        }
        wants.sort { $0.due < $1.due }
        if let announced = player.announced, let list = lists[announced.list], list.mode != .off {
            // The player knows best; it has been read off the list as a rule.
            if let index = wants.firstIndex(where: { $0.piece == announced.piece }) {
                wants.insert(wants.remove(at: index), at: 0)
            } else if !isSettled(announced.piece, list) {
                wants.insert(
                    Want(
                        piece: announced.piece, list: announced.list,
                        sequence: sequence(of: announced.piece, list), due: 0), at: 0)
            }
        }
        return wants
    }

    private func sequence(of piece: MediaPiece, _ list: List) -> Int? {
        list.picture.index(of: piece.url, from: piece.range?.lowerBound ?? 0)
            .map(list.picture.sequence)
    }

    private func isSettled(_ piece: MediaPiece, _ list: List) -> Bool {
        if let sequence = sequence(of: piece, list) { return list.settled.contains(sequence) }
        return list.settledStructure.contains(piece)
    }

    private func isAmongTheLast(_ player: Player) -> Bool {
        guard players.count > limits.players else { return true }
        return players.values.filter { $0.askedAt > player.askedAt }.count < limits.players
    }

    private func wanted(_ track: Track, _ list: List, _ player: Player) -> [Want] {
        let rate = list.rate(player.hints)
        let depth = LookaheadDepth(
            mode: list.mode, limits: limits, line: line.bytesPerSecond, rate: rate,
            hints: player.hints
        ).seconds
        guard depth > 0 else { return [] }
        let first = list.picture.index(after: track.sequence)
        var wants: [Want] = []
        var due = 0.0
        var known = structureInForce(track, list)
        for index in first..<list.picture.count {
            if let reach = list.reach, index >= reach { break }
            let sequence = list.picture.sequence(at: index)
            guard due < depth, due == 0 || due * (rate ?? 0) < Double(limits.bytes) else { break }
            for piece in list.picture.structure(at: index) where !known.contains(piece) {
                known.insert(piece)
                guard !list.settledStructure.contains(piece) else { continue }
                wants.append(Want(piece: piece, list: track.list, sequence: nil, due: due))
            }
            if !list.settled.contains(sequence) {
                wants.append(
                    Want(
                        piece: list.picture.piece(at: index), list: track.list, sequence: sequence,
                        due: due))
            }
            due += max(list.picture.seconds(at: index), 0.1)
        }
        return wants
    }

    /// What the player needs for the segment that it asked for, and asks for itself.
    private func structureInForce(_ track: Track, _ list: List) -> Set<MediaPiece> {
        let index = list.picture.index(after: track.sequence) - 1
        return index >= 0 ? Set(list.picture.structure(at: index)) : []
    }
}
