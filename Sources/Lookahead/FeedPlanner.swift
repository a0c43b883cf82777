// Decides what to fetch for a feed: the active item whole, its neighbours' beginnings by rank,
// within budgets; fetches for items that leave the window are cancelled immediately.
//
// Pure: it takes the viewer's position, the content of items and the results of fetches, each with
// the time in seconds, and returns actions.
import HLS
import Numbers
package import URISyntax

/// An action for a feed.
package enum FeedAction: Sendable, Equatable {
    /// Read an item to find its pieces; reported back by `learned` or `isDead`.
    case read(content: Int)
    /// Fetch bytes of an item into the store; `yields` while players must not share the line.
    case fetch(AheadID, content: Int, MediaPiece, yields: Bool)
    case setYields(AheadID, Bool)
    case cancel(AheadID)
}

package struct FeedPlanner: Sendable {
    package enum Direction: String, Sendable, Hashable { case forward, backward }

    /// The content at each position of the list; repeated items share one.
    package let contents: [Int]
    /// The weights given for items, by position; nil if the kind of media decides.
    let weights: [Double?]
    /// The kinds of items, where known.
    var media: [Int: FeedMedia] = [:]
    package var parameters: FeedParameters
    package private(set) var index: Int
    package private(set) var direction: Direction

    var known: [Int: FeedContent] = [:]
    var running: [AheadID: Running] = [:]
    private var lastID: UInt64 = 0
    /// The wasted bytes of items that were already dropped from `known`.
    private var forgottenWaste: Int64 = 0
    package private(set) var fetchedBytes: Int64 = 0

    struct Running: Sendable {
        let content: Int
        let part: Int
        let url: AbsoluteURL
        let range: Range<Int64>?
        var yields: Bool
        var isCancelled = false
    }

    /// Creates a planner for a feed whose viewer is at `index`.
    ///
    /// `contents` has a number per item, shared by equal items; `weights` has the weight of each
    /// item, nil to use the parameters' weight for its kind.
    package init(
        contents: [Int], weights: [Double?], at index: Int, _ direction: Direction = .forward,
        _ parameters: FeedParameters = .standard
    ) {
        precondition(contents.indices.contains(index) && weights.count == contents.count)
        self.contents = contents
        self.weights = weights
        self.parameters = parameters
        self.index = index
        self.direction = direction
    }

    /// The content of the active item.
    package var active: Int { contents[index] }

    /// Bytes fetched for items that left the window unseen.
    package var wastedBytes: Int64 {
        let inWindow = Set(window.map(\.content))
        return known.reduce(forgottenWaste) { sum, entry in
            inWindow.contains(entry.key) || entry.value.wasActive
                ? sum : sum.addingSaturated(entry.value.broughtBytes)
        }
    }

    /// True if the passing of time alone may change the plan.
    package func needsTicks(at now: Double) -> Bool {
        !running.isEmpty || !awaited.isEmpty || comesOn(at: now)
            || window.contains { member in
                guard let state = known[member.content] else { return false }
                return state.failures > 0 || state.losses > 1 && state.restsUntil > now
            }
    }

    // MARK: Events

    /// Starts planning; must be called once.
    package mutating func start(at now: Double) -> [FeedAction] {
        become(active, at: now)
        return plan(at: now)
    }

    private mutating func become(_ content: Int, at now: Double) {
        if let state = known[content], case .dead = state.knowledge, state.refusals > 0,
            now >= state.restsUntil
        {
            known[content]?.knowledge = .unknown
        }
        // Its player starts with other segments by now, and these leave the origin soon.
        if known[content]?.isOutdated(at: now) == true { known[content]?.knowledge = .unknown }
        forgive(content, at: now)
        known[content, default: FeedContent()].wasActive = true
        known[content]?.activeSince = now
    }

    /// Moves the viewer to another item; `index` must be within the list.
    ///
    /// Without a given direction, it follows the direction of the move.
    package mutating func move(
        to index: Int, _ direction: Direction? = nil, at now: Double
    ) -> [FeedAction] {
        precondition(contents.indices.contains(index))
        if let direction {
            self.direction = direction
        } else if index != self.index {
            self.direction = index > self.index ? .forward : .backward
        }
        let former = active
        self.index = index
        if active != former {
            known[former]?.leave()
            become(active, at: now)
        }
        let actions = plan(at: now)
        forget()
        return actions
    }

    /// Records the plan of an item that was read.
    package mutating func learned(
        _ content: Int, _ plan: FeedPlan, at now: Double
    ) -> [FeedAction] {
        guard known[content] != nil else { return [] }
        known[content]?.learn(plan, at: now)
        return self.plan(at: now)
    }

    /// Records the kind of an item, before or when it is read.
    package mutating func isKind(_ content: Int, _ kind: FeedMedia) {
        media[content] = kind
    }

    /// Marks an item that is neither a playlist nor media, or that the origin refuses without
    /// another token; it is read again only when its viewer comes to it after a delay, which grows
    /// with each refusal.
    package mutating func isRefused(
        _ content: Int, _ reason: String, at now: Double
    ) -> [FeedAction] {
        guard let state = known[content] else { return [] }
        // Pieces of one item that are refused at the same time are one refusal.
        if case .dead = state.knowledge { return plan(at: now) }
        known[content]?.losses = 0
        let refusals = state.refusals + 1
        known[content]?.refusals = refusals
        known[content]?.restsUntil = now + min(3_600, 30 * Double(1 << min(refusals, 7)))
        known[content]?.knowledge = .dead(reason)
        known[content]?.reason = reason
        return plan(at: now)
    }

    /// Records that an item could not be read, permanently or for now.
    package mutating func isDead(
        _ content: Int, _ reason: String, forGood: Bool, at now: Double
    ) -> [FeedAction] {
        guard known[content] != nil else { return [] }
        known[content]?.knowledge = forGood ? .dead(reason) : .unknown
        if !forGood { rest(content, reason, at: now) }
        known[content]?.reason = reason
        return plan(at: now)
    }

    /// Records that the origin refused a URL that a playlist of an item names: the item is read again
    /// after a second, whatever failed before.
    package mutating func hasExpired(
        _ content: Int, _ reason: String, at now: Double
    ) -> [FeedAction] {
        guard known[content] != nil else { return [] }
        known[content]?.knowledge = .unknown
        known[content]?.failures = 0
        rest(content, reason, at: now)
        return plan(at: now)
    }

    /// Discards the plans of other items, since another rendition is played now.
    package mutating func choseOtherwise(at now: Double) -> [FeedAction] {
        let seen = active
        let others = known.filter { $0.key != seen && $0.value.plan != nil }.keys
        for content in Array(others) { known[content]?.knowledge = .unknown }
        return plan(at: now)
    }

    /// Records that the viewer's player requested a resource of an item, from the byte `start` on.
    package mutating func played(
        _ content: Int, _ url: AbsoluteURL, from start: Int64 = 0, at now: Double
    ) -> [FeedAction] {
        guard content == active, let state = known[content],
            let part = state.plan?.index(of: url, from: start, after: state.playedPart)
        else { return [] }
        if known[content]?.playedSince == nil { known[content]?.playedSince = now }
        known[content]?.reach(part)
        return self.plan(at: now)
    }

    /// Records the end of a fetch.
    package mutating func ended(
        _ id: AheadID, _ result: AheadResult, reason: String? = nil, at now: Double
    ) -> [FeedAction] {
        guard let fetch = running.removeValue(forKey: id) else { return [] }
        fetchedBytes = fetchedBytes.addingSaturated(result.bytes)
        let isOfPlan = self.part(of: fetch) != nil
        known[fetch.content]?.bring(result.bytes, of: isOfPlan ? fetch.part : nil)
        switch result.ending {
        case .stored: note(fetch)
        case .failed: rest(fetch.content, reason ?? "the fetch failed", at: now)
        case .cancelled: break
        }
        return plan(at: now)
    }

    /// Records how many bytes from the start of a part of the active item are present; `.max` for
    /// all.
    package mutating func noticed(part: Int, bytes: Int64) {
        known[active]?.note(bytes, of: part)
    }

    /// Replans as time passes; to be called about every second while `needsTicks`.
    package mutating func tick(at now: Double) -> [FeedAction] { plan(at: now) }

    /// Returns the part that a fetch is for; nil if another plan has come meanwhile.
    private func part(of fetch: Running) -> FeedPlan.Part? {
        let part = known[fetch.content]?.plan?.parts[safe: fetch.part]
        return part?.piece.url == fetch.url ? part : nil
    }

    private mutating func note(_ fetch: Running) {
        guard let part = part(of: fetch) else { return }
        known[fetch.content]?.failures = 0
        known[fetch.content]?.reason = nil
        let whole = fetch.range == nil || fetch.range == part.piece.range
        let start = part.piece.range?.lowerBound ?? 0
        let reached = whole ? .max : (fetch.range?.upperBound ?? 0) - start
        known[fetch.content]?.note(reached, of: fetch.part)
    }

    /// Delays the next attempt, longer after each failure, up to 30 s.
    private mutating func rest(_ content: Int, _ reason: String, at now: Double) {
        let failures = (known[content]?.failures ?? 0) + 1
        known[content]?.failures = failures
        known[content]?.restsUntil = now + min(30, 0.5 * Double(1 << min(failures, 6)))
        known[content]?.reason = reason
    }

    /// Drops the state of items outside the window, once more than 200 are known.
    private mutating func forget() {
        guard known.count > 200 else { return }
        let kept = Set(window.map(\.content)).union(running.values.map(\.content))
        // Refused items are kept, up to 2,000 known ones; otherwise they would be read again
        // immediately.
        for (content, state) in known
        where !kept.contains(content) && (state.refusals == 0 || known.count > 2_000) {
            if !state.wasActive {
                forgottenWaste = forgottenWaste.addingSaturated(state.broughtBytes)
            }
            known[content] = nil
        }
    }

    // MARK: Planning

    /// Starts, cancels and updates fetches to match the wants.
    mutating func plan(at now: Double) -> [FeedAction] {
        var actions = reads(at: now)
        let wants = self.wants(at: now)
        let hurried = hurriedNeighbour(at: now)
        var busy = 0
        for (id, fetch) in running where !fetch.isCancelled {
            let wanted = wants.first {
                $0.content == fetch.content && $0.part == fetch.part && $0.piece.url == fetch.url
            }
            guard let yields = wanted?.yields else {
                running[id]?.isCancelled = true
                actions.append(.cancel(id))
                continue
            }
            if !isStructure(fetch.content, fetch.part) { busy += 1 }
            if fetch.yields != yields {
                running[id]?.yields = yields
                actions.append(.setYields(id, yields))
            }
        }
        for want in wants {
            let ofItem = running.filter {
                !$0.value.isCancelled && $0.value.content == want.content
            }
            guard !ofItem.values.contains(where: { $0.part == want.part }) else { continue }
            // Keys and initialization sections are small: they cost a round trip, but hardly any of
            // the line.
            let isSmall = isStructure(want.content, want.part)
            guard busy < (isSmall ? 2 : 1) * parameters.parallel else { continue }
            if let hurried, !isSmall, ![active, hurried].contains(want.content) { continue }
            let large = ofItem.values.count { !isStructure($0.content, $0.part) }
            guard isSmall || large < parameters.parallelOfItem else { continue }
            lastID += 1
            let id = AheadID(lastID)
            running[id] = Running(
                content: want.content, part: want.part, url: want.piece.url, range: want.range,
                yields: want.yields)
            if !isSmall { busy += 1 }
            let piece = MediaPiece(want.piece.url, range: want.range, role: want.piece.role)
            actions.append(.fetch(id, content: want.content, piece, yields: want.yields))
        }
        return actions
    }

    private func isStructure(_ content: Int, _ part: Int) -> Bool {
        guard let plan = known[content]?.plan, plan.parts.indices.contains(part) else {
            return false
        }
        return plan.parts[part].seconds == 0 && plan.parts[part].piece.role != .media
    }

    private mutating func reads(at now: Double) -> [FeedAction] {
        window.compactMap { member in
            let state = known[member.content] ?? FeedContent()
            guard state.knowledge == .unknown, now >= state.restsUntil else {
                known[member.content] = state
                return nil
            }
            known[member.content] = state
            known[member.content]?.knowledge = .reading
            return .read(content: member.content)
        }
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? {
        indices.contains(index) ? self[index] : nil
    }
}
