import HLS
import Numbers
import URISyntax

/// Which items of a feed are looked after, and which of their bytes come first.
extension FeedPlanner {
    /// An item that is looked after.
    package struct Member: Sendable, Equatable {
        package let index: Int
        package let content: Int
        /// 0 for the active item; the lower the sooner.
        package let rank: Int
    }

    /// The active item and its neighbours, as far as the budget of costs goes; dead items cost
    /// nothing and stand for no other one.
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
            if cost > parameters.costBudget { break }
            members.append(Member(index: index, content: content, rank: members.count))
        }
        return members
    }

    private func weight(at index: Int) -> Double {
        if let told = weights[index] { return told }
        return media[contents[index]] == .picture
            ? parameters.pictureWeight : parameters.videoWeight
    }

    /// The active item, then two in the direction of travel for each one behind.
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

    /// How far an item is got ready.
    package enum Readiness: String, Sendable {
        case waiting, reading, fetching, ready, whole, dead
    }

    /// What is to be told of a member of the window.
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
            let first = plan.parts.indices.first { state.present[$0] != .max }
            seconds = first.map { plan.parts[$0].begins } ?? plan.seconds
            if first == nil {
                readiness = .whole
            } else if plan.head(parameters).allSatisfy({ state.holds($0.index, $0.range) }) {
                readiness = isFetching ? .fetching : .ready
            }
        }
        return (readiness, state.broughtBytes, seconds, state.reason)
    }

    // MARK: What is wanted

    struct Want {
        let content: Int
        let part: Int
        let piece: MediaPiece
        let range: Range<Int64>?
        /// Whether it waits while any player waits for media.
        let yields: Bool
    }

    /// Whether the active item has so many seconds in hand that others may share the line.
    func isSecure(_ seconds: Double, at now: Double) -> Bool {
        guard seconds > 0 else { return true }
        guard let state = known[active] else { return false }
        if case .dead = state.knowledge { return true }
        return (state.secured(at: now) ?? 0) >= seconds
    }

    /// What is to be fetched, the most urgent first, as far as the budget of bytes goes.
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

    /// Parts of the active item that go before its neighbours: those of the first picture and, once
    /// the viewer watches, what keeps it from running dry.
    private func nearParts(at now: Double) -> Int {
        guard let state = known[active], let plan = state.plan else { return 0 }
        let start = (plan.head(startParameters).map(\.index).last ?? -1) + 1
        guard hasSettled(at: now) else { return start }
        let reach = state.watched(at: now) + parameters.secureSeconds
        return max(start, plan.parts.firstIndex { $0.begins >= reach } ?? plan.parts.count)
    }

    /// The next item, while it has no first picture and the player of this one uses the line too.
    ///
    /// No other neighbour's bytes are begun then: whoever flicks on in the first second finds one
    /// whole picture rather than parts of three.
    func hurriedNeighbour(at now: Double) -> Int? {
        let window = self.window
        guard parameters.startBytes > 0, window.count > 1, !hasSettled(at: now),
            known[active]?.playedSince == nil || !awaited.isEmpty,
            let next = known[window[1].content], !hasStarted(next)
        else { return nil }
        return window[1].content
    }

    /// Whether the viewer stays with the active item.
    private func hasSettled(at now: Double) -> Bool {
        (known[active]?.watched(at: now) ?? 0) >= parameters.settleSeconds
    }

    /// Bytes that were fetched for the window.
    private func held(_ members: [Member]) -> Int64 {
        members.map { known[$0.content]?.broughtBytes ?? 0 }.saturatedSum()
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
        // What the player has asked for already is its own.
        let first = (state.playedPart ?? -1) + 1
        let yields = !isSecure(parameters.secureSeconds, at: now)
        // One connection seldom fills the line: the next piece comes beside the one that is waited
        // for, but not beside the first picture.
        let beside = hasStarted(state) ? first : -1
        let reach = parameters.activeSeconds + state.watched(at: now)
        return plan.parts.indices.dropFirst(first).compactMap { index in
            let piece = plan.parts[index].piece
            return state.holds(index, nil) || plan.parts[index].begins >= reach
                ? nil
                : Want(
                    content: active, part: index, piece: piece, range: piece.range,
                    yields: yields && index != beside)
        }
    }

    /// What a first picture takes.
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

    /// Whether more of the active item will be wanted as its viewer comes to it.
    func comesOn(at now: Double) -> Bool {
        guard parameters.isOn, let state = known[active], let plan = state.plan else {
            return false
        }
        return parameters.activeSeconds + state.watched(at: now) < plan.seconds
    }

    /// What the active item's player has asked for and is not there as far as is known: it may have
    /// brought it meanwhile.
    package var awaited: [(part: Int, piece: MediaPiece)] {
        guard parameters.isOn, let state = known[active], let plan = state.plan,
            let playedPart = state.playedPart
        else { return [] }
        return plan.parts.indices.prefix(playedPart + 1).suffix(8).compactMap { index in
            state.holds(index, nil) ? nil : (index, plan.parts[index].piece)
        }
    }

    /// Whether the first picture of an item is there.
    private func hasStarted(_ state: FeedContent) -> Bool {
        state.plan?.head(startParameters).allSatisfy { state.holds($0.index, $0.range) } ?? false
    }

    /// Nothing while a player of the active item is short: what stands still goes on filling sockets,
    /// which costs the line as much as if it went on.
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
