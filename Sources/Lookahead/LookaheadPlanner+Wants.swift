import HLS
import URISyntax

/// The prediction of players' next requests, and the resulting actions.
extension LookaheadPlanner {
    mutating func plan(session: UInt64, at now: Double) -> [LookaheadAction] {
        players.keys.filter { $0.session == session }.flatMap { plan($0, at: now) }
    }

    /// Starts and cancels fetches for a player to match what it will need.
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

    /// Returns the media sequence number of a player's last request in a list.
    private func place(of id: PlayerID, in list: ListID) -> Int? {
        players[id]?.tracks.values.first { $0.list == list }?.sequence
    }

    /// True if the player will reach a running fetch by playing on, however far ahead it is.
    ///
    /// When the line turns out to be fast, the depth decreases; a fetch cancelled because of that
    /// would be requested again a moment later.
    private func isStillAhead(_ fetch: Running, at now: Double) -> Bool {
        guard let player = players[fetch.player], isActive(player), let begunAt = fetch.begunAt,
            fetch.sequence != nil || fetch.piece.role != .segment,
            // A player that waits for its current object needs the line for it.
            player.hints?.isStarving != true
        else { return false }
        return tracksInPlay(of: player, at: now).contains { track, list in
            // One step back is a retry, or part of a change of rendition.
            track.list == fetch.list && list.mode != .off && track.sequence >= begunAt - 1
                && track.sequence < fetch.sequence ?? .max
        }
    }

    /// True if anything is fetched ahead of the player.
    private func isActive(_ player: Player) -> Bool {
        !player.hasStopped && isAmongTheLast(player)
    }

    /// Returns the tracks that a player plays, with their lists, without those in which it jumps
    /// about or has made no request for a while.
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
        /// When it is needed, in seconds of playing time after the last request.
        let due: Double
    }

    /// Returns what a player will need, earliest first; nothing once it has stopped.
    private func wanted(_ id: PlayerID, at now: Double) -> [Want] {
        guard let player = players[id], isActive(player) else { return [] }
        var wants = tracksInPlay(of: player, at: now).flatMap {
            self.wanted($0.track, $0.list, player)
        }
        wants.sort { $0.due < $1.due }
        if let announced = player.announced, let list = lists[announced.list], list.mode != .off {
            // The player's announcement takes precedence; its piece is usually in the list as well.
            if let index = wants.firstIndex(where: { $0.piece == announced.piece }) {
                wants.insert(wants.remove(at: index), at: 0)
            } else if !isFinished(announced.piece, list) {
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

    private func isFinished(_ piece: MediaPiece, _ list: List) -> Bool {
        if let sequence = sequence(of: piece, list) { return list.finished.contains(sequence) }
        return list.finishedStructure.contains(piece)
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
            if index == first || !list.picture.sharesStructure(at: index, with: index - 1) {
                for piece in list.picture.structure(at: index)
                where known.insert(piece).inserted && !list.finishedStructure.contains(piece) {
                    wants.append(Want(piece: piece, list: track.list, sequence: nil, due: due))
                }
            }
            if !list.finished.contains(sequence) {
                wants.append(
                    Want(
                        piece: list.picture.piece(at: index), list: track.list, sequence: sequence,
                        due: due))
            }
            due += max(list.picture.seconds(at: index), 0.1)
        }
        return wants
    }

    /// Returns the structure of the segment last requested, which the player requests itself.
    private func structureInForce(_ track: Track, _ list: List) -> Set<MediaPiece> {
        let index = list.picture.index(after: track.sequence) - 1
        return index >= 0 ? Set(list.picture.structure(at: index)) : []
    }
}
