import HLS
import Numbers
package import URISyntax

/// The window of a feed: which items are fetched, and in what order their bytes.
extension FeedPlanner {
    /// An item in the window.
    package struct Member: Sendable, Equatable {
        package let index: Int
        package let content: Int
        /// 0 for the active item; lower ranks are fetched first.
        package let rank: Int
    }

    /// The active item and its neighbours within the cost budget; dead items cost nothing and are
    /// not replaced by others.
    ///
    /// The active item is there whatever it costs, unless nothing may be fetched.
    package var window: [Member] {
        var members: [Member] = []
        var seen: Set<Int> = []
        var cost = 0.0
        for index in order {
            let content = contents[index]
            guard seen.insert(content).inserted else { continue }
            if case .dead? = known[content]?.knowledge, index != self.index { continue }
            let price = members.isEmpty ? parameters.activeCost : parameters.neighbourCost
            cost += price * weight(at: index)
            let mustBe = members.isEmpty && parameters.costBudget > 0
            guard cost <= parameters.costBudget || mustBe else { break }
            members.append(Member(index: index, content: content, rank: members.count))
        }
        return members
    }

    private func weight(at index: Int) -> Double {
        if let given = weights[index] { return given }
        return media[contents[index]] == .picture
            ? parameters.pictureWeight : parameters.videoWeight
    }

    /// The active item, then alternately two items ahead and one behind.
    private var order: [Int] {
        let step = direction == .forward ? 1 : -1
        var order = [index]
        var ahead = 0
        var behind = 0
        var reached = 0
        while ahead < parameters.ahead || behind < parameters.behind {
            reached += 1
            let goesBack =
                behind < parameters.behind && (ahead >= parameters.ahead || reached % 3 == 0)
            let place: Int
            if goesBack {
                behind += 1
                place = index - step * behind
            } else {
                ahead += 1
                place = index + step * ahead
            }
            if contents.indices.contains(place) { order.append(place) }
        }
        return order
    }

    /// How much of an item is ready.
    package enum Readiness: String, Sendable {
        case waiting, reading, fetching, ready, whole, dead
    }

    /// Returns the state of a member of the window.
    package func report(
        on member: Member
    ) -> (readiness: Readiness, bytes: Int64, seconds: Double, reason: String?) {
        guard let state = known[member.content] else { return (.waiting, 0, 0, nil) }
        let isFetching = running.values.contains { $0.content == member.content }
        var readiness = isFetching ? Readiness.fetching : .waiting
        var seconds = 0.0
        switch state.knowledge {
        case .dead: readiness = .dead
        case .reading: readiness = .reading
        case .unknown: break
        case .known(let plan):
            let isWhole = !plan.parts.indices.contains(state.firstMissing)
            seconds = isWhole ? plan.seconds : plan.parts[state.firstMissing].begins
            if isWhole {
                readiness = .whole
            } else if plan.head(parameters).allSatisfy({ state.holds($0.index, $0.range) }) {
                readiness = isFetching ? .fetching : .ready
            }
        }
        return (readiness, state.broughtBytes, seconds, state.reason)
    }

    // MARK: Wants

    struct Want {
        let content: Int
        let part: Int
        let piece: MediaPiece
        let range: Range<Int64>?
        /// True if it pauses while any player waits for media.
        let yields: Bool
    }

    /// True if the active item has enough seconds left for others to share the line.
    func isSecure(_ seconds: Double, at now: Double) -> Bool {
        guard seconds > 0 else { return true }
        guard let state = known[active] else { return false }
        if case .dead = state.knowledge { return true }
        return (state.secured(at: now) ?? 0) >= seconds
    }

    /// Returns the fetches to make, most urgent first, within the byte budget.
    func wants(at now: Double) -> [Want] {
        let members = window
        guard !members.isEmpty else { return [] }
        let ofActive = wantsOfActive(at: now)
        let neighbours = members.dropFirst()
        let starts = neighbours.flatMap { self.starts(of: $0, at: now) }
        let heads = neighbours.prefix(parameters.deep).flatMap { self.heads(of: $0, at: now) }
        var wants: [Want]
        if parameters.activeFirst {
            wants = ofActive + starts + heads
        } else {
            let near = nearParts(at: now)
            wants = ofActive.filter { $0.part < near } + starts + heads
            wants += ofActive.filter { $0.part >= near }
        }
        var left = parameters.byteBudget.subtractingSaturated(held(members))
        wants.removeAll { want in
            guard left > 0 else { return true }
            left = left.subtractingSaturated(size(want))
            return false
        }
        return wants
    }

    /// Returns the number of parts of the active item that precede its neighbours: those of the
    /// first picture and, once the viewer watches, those that keep it from running dry.
    private func nearParts(at now: Double) -> Int {
        guard let state = known[active], let plan = state.plan else { return 0 }
        let start = (plan.head(startParameters).map(\.index).last ?? -1) + 1
        guard hasSettled(at: now) else { return start }
        let reach = state.watched(at: now) + parameters.secureSeconds
        return max(start, plan.parts.firstIndex { $0.begins >= reach } ?? plan.parts.count)
    }

    /// Returns the next item, while it has no first picture, the viewer has not settled, and the
    /// active item's player has not started or waits for bytes.
    ///
    /// No fetch of another neighbour is started then: a viewer who moves on within the first second
    /// gets one complete picture instead of parts of three.
    func hurriedNeighbour(at now: Double) -> Int? {
        let window = self.window
        guard parameters.startBytes > 0, window.count > 1, !hasSettled(at: now),
            known[active]?.playedSince == nil || !awaited.isEmpty,
            let next = known[window[1].content], !hasStarted(next)
        else { return nil }
        return window[1].content
    }

    /// True if the viewer has stayed with the active item for `settleSeconds`.
    private func hasSettled(at now: Double) -> Bool {
        (known[active]?.watched(at: now) ?? 0) >= parameters.settleSeconds
    }

    /// Returns the bytes fetched for the window that the viewer has not reached.
    private func held(_ members: [Member]) -> Int64 {
        members.map { known[$0.content]?.unseenBytes.values.saturatedSum() ?? 0 }.saturatedSum()
    }

    private func size(_ want: Want) -> Int64 {
        if let range = want.range { return Int64(range.count) }
        guard let plan = known[want.content]?.plan else { return parameters.headBytes }
        return plan.bytes(in: plan.parts[want.part].seconds) ?? parameters.headBytes
    }

    private func wantsOfActive(at now: Double) -> [Want] {
        guard let state = known[active], let plan = state.plan, now >= state.restsUntil else {
            return []
        }
        let ahead = partsAhead(of: state, plan, at: now)
        let yields = !isSecure(parameters.secureSeconds, at: now)
        // One connection seldom fills the line: the next piece is fetched in parallel with the one
        // that the player waits for, but not in parallel with the first picture.
        let beside = hasStarted(state) ? ahead.lowerBound : -1
        return ahead.compactMap { index -> Want? in
            let piece = plan.parts[index].piece
            guard !state.holds(index, nil) else { return nil }
            return Want(
                content: active, part: index, piece: piece, range: piece.range,
                yields: yields && index != beside)
        }
    }

    /// Returns the fetches for a first picture.
    private func starts(of member: Member, at now: Double) -> [Want] {
        guard parameters.startBytes > 0 else { return [] }
        let yields = hasSettled(at: now) && !isSecure(parameters.startSecureSeconds, at: now)
        return beginning(of: member, startParameters, yields: yields, at: now)
    }

    private var startParameters: FeedParameters {
        var start = parameters
        start.headBytes = min(parameters.startBytes, parameters.headBytes)
        start.headSeconds = 0
        return start
    }

    /// True if the feed sees to what the active item's player needs after a request.
    ///
    /// What follows is present or wanted then, or the player has requested it, as it requests audio
    /// beside video; otherwise look-ahead sees to it, as for a stream in no feed. False for live
    /// streams, of which the feed knows only the beginning; for an item that was given up or waits
    /// after a failure; once a budget is used up; for what the feed did not choose, such as another
    /// language; and for a player ahead of `activeSeconds`.
    ///
    /// - Parameters:
    ///   - url: what the player requests.
    ///   - start: the first byte of it.
    ///   - now: the time in seconds.
    /// - Returns: whether the feed leads.
    package func leads(after url: AbsoluteURL, from start: Int64 = 0, at now: Double) -> Bool {
        let active = self.active
        guard parameters.isOn, let state = known[active] else { return false }
        switch state.knowledge {
        case .dead: return false
        // The plan comes at about the same time as the player's own list.
        case .unknown, .reading: return now >= state.restsUntil
        case .known(let plan):
            guard !plan.isLive,
                let part = plan.index(of: url, from: start, after: state.playedPart)
            else { return false }
            let missing = plan.followers(of: part).filter {
                !state.holds($0, nil) && !state.isRequested($0)
            }
            guard !missing.isEmpty else { return true }
            let wanted = Set(wants(at: now).filter { $0.content == active }.map(\.part))
            return wanted.isSuperset(of: missing)
        }
    }

    /// True if an item was a live stream when it was read last.
    package func isLive(_ content: Int) -> Bool { known[content]?.isLive ?? false }

    /// True if more of the active item will be needed as its viewer advances.
    func comesOn(at now: Double) -> Bool {
        guard parameters.isOn, let state = known[active], let plan = state.plan else {
            return false
        }
        return parameters.activeSeconds + state.watched(at: now) < plan.seconds
    }

    /// The parts that the active item's player requested and that are not known to be present; the
    /// player's request may have fetched them meanwhile.
    package var awaited: [(part: Int, piece: MediaPiece)] {
        guard parameters.isOn, let state = known[active], let plan = state.plan,
            let playedPart = state.playedPart
        else { return [] }
        return plan.parts.indices.prefix(playedPart + 1).suffix(8).compactMap { index in
            state.holds(index, nil) ? nil : (index, plan.parts[index].piece)
        }
    }

    /// True if the first picture of an item is present.
    private func hasStarted(_ state: FeedContent) -> Bool {
        state.plan?.head(startParameters).allSatisfy { state.holds($0.index, $0.range) } ?? false
    }

    /// Returns the fetches for a neighbour's head; none while the active item's player is short of
    /// playing time, since paused transfers keep filling socket buffers, which takes as much of the
    /// line as running ones.
    private func heads(of member: Member, at now: Double) -> [Want] {
        let yields = !isSecure(parameters.secureSeconds, at: now)
        guard !yields || known[active]?.playedSince == nil || parameters.activeFirst else {
            return []
        }
        return beginning(of: member, parameters, yields: yields, at: now)
    }

    private func beginning(
        of member: Member, _ parameters: FeedParameters, yields: Bool, at now: Double
    ) -> [Want] {
        guard let state = known[member.content], let plan = state.plan, now >= state.restsUntil
        else { return [] }
        return plan.head(parameters).compactMap { part in
            state.holds(part.index, part.range)
                ? nil
                : Want(
                    content: member.content, part: part.index, piece: plan.parts[part.index].piece,
                    range: part.range, yields: yields)
        }
    }
}
