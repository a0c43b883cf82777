// Decides what to fetch for a feed: the active item whole, its neighbours' beginnings by rank, under
// budgets; what falls out of the window is given up at once.
//
// Pure: it is told where the viewer is, what items consist of and how fetches ended, each with the
// time in seconds, and answers with actions.
import HLS
import Numbers
package import URISyntax

/// What is to be done for a feed.
package enum FeedAction: Sendable, Equatable {
    /// Find out what an item consists of; `learned` or `isDead` answers.
    case read(content: Int)
    /// Bring bytes of an item into the store; `yields` while players must not share the line.
    case fetch(AheadID, content: Int, MediaPiece, yields: Bool)
    case setYields(AheadID, Bool)
    case cancel(AheadID)
}

package struct FeedPlanner: Sendable {
    package enum Direction: String, Sendable, Hashable { case forward, backward }

    /// For each place in the list the content there; items that are repeated share one.
    package let contents: [Int]
    /// What the order says that items weigh, by place; nil where the kind of media decides.
    let weights: [Double?]
    /// The kinds of items, as far as they are known.
    var media: [Int: FeedMedia] = [:]
    package var parameters: FeedParameters
    package private(set) var index: Int
    package private(set) var direction: Direction

    var known: [Int: FeedContent] = [:]
    var running: [AheadID: Running] = [:]
    private var lastID: UInt64 = 0
    /// Of items that are forgotten already.
    private var forgottenWaste: Int64 = 0
    package private(set) var fetchedBytes: Int64 = 0

    struct Running: Sendable {
        let content: Int
        let part: Int
        let range: Range<Int64>?
        var yields: Bool
        var isCancelled = false
    }

    /// A feed whose viewer is at `index`.
    ///
    /// `contents` has for each item a number that equal items share, `weights` what each item weighs,
    /// nil for what the parameters say of its kind.
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

    /// The content that the viewer sees.
    package var active: Int { contents[index] }

    /// Bytes fetched for items that left the window without having been seen.
    package var wastedBytes: Int64 {
        let inWindow = Set(window.map(\.content))
        return known.reduce(forgottenWaste) { sum, entry in
            inWindow.contains(entry.key) || entry.value.wasActive
                ? sum : sum.addingSaturated(entry.value.broughtBytes)
        }
    }

    /// Whether time alone may bring a change.
    package func needsTicks(at now: Double) -> Bool {
        !running.isEmpty || !awaited.isEmpty || comesOn(at: now)
            || window.contains { (known[$0.content]?.failures ?? 0) > 0 }
    }

    // MARK: Events

    /// Begins; to be called once.
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
        known[content, default: FeedContent()].wasActive = true
        known[content]?.activeSince = now
    }

    /// The viewer went to another item, in the range of the list.
    ///
    /// Without a told direction it travels the way that it went.
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
            known[former]?.playedSince = nil
            known[former]?.playedPart = nil
            become(active, at: now)
        }
        let actions = plan(at: now)
        forget()
        return actions
    }

    /// An item was read.
    package mutating func learned(
        _ content: Int, _ plan: FeedPlan, at now: Double
    ) -> [FeedAction] {
        guard known[content] != nil else { return [] }
        if known[content]?.plan != plan { known[content]?.present = [:] }
        known[content]?.knowledge = .known(plan)
        known[content]?.reason = nil
        return self.plan(at: now)
    }

    /// What an item is became known, before or when it was read.
    package mutating func isKind(_ content: Int, _ kind: FeedMedia) {
        media[content] = kind
    }

    /// An item is neither a playlist nor media: it is not asked for again before its viewer comes to it
    /// after a while, each time a longer one.
    package mutating func isRefused(
        _ content: Int, _ reason: String, at now: Double
    ) -> [FeedAction] {
        guard known[content] != nil else { return [] }
        let refusals = (known[content]?.refusals ?? 0) + 1
        known[content]?.refusals = refusals
        known[content]?.restsUntil = now + min(3_600, 30 * Double(1 << min(refusals, 7)))
        known[content]?.knowledge = .dead(reason)
        known[content]?.reason = reason
        return plan(at: now)
    }

    /// An item could not be read: for good, or for now.
    package mutating func isDead(
        _ content: Int, _ reason: String, forGood: Bool, at now: Double
    ) -> [FeedAction] {
        guard known[content] != nil else { return [] }
        known[content]?.knowledge = forGood ? .dead(reason) : .unknown
        if !forGood { rest(content, reason, at: now) }
        known[content]?.reason = reason
        return plan(at: now)
    }

    /// What was known of items may be wrong: another rendition is played now.
    package mutating func choseOtherwise(at now: Double) -> [FeedAction] {
        let seen = active
        let others = known.filter { $0.key != seen && $0.value.plan != nil }.keys
        for content in Array(others) { known[content]?.knowledge = .unknown }
        return plan(at: now)
    }

    /// The viewer's player asked for a resource of an item.
    package mutating func played(
        _ content: Int, _ url: AbsoluteURL, at now: Double
    ) -> [FeedAction] {
        guard content == active, let plan = known[content]?.plan,
            let part = plan.parts.firstIndex(where: { $0.piece.url == url })
        else { return [] }
        if known[content]?.playedSince == nil { known[content]?.playedSince = now }
        let foremost = known[content]?.playedPart ?? 0
        known[content]?.playedPart = max(part, foremost)
        return self.plan(at: now)
    }

    /// A fetch has ended.
    package mutating func ended(
        _ id: AheadID, _ result: AheadResult, reason: String? = nil, at now: Double
    ) -> [FeedAction] {
        guard let fetch = running.removeValue(forKey: id) else { return [] }
        fetchedBytes = fetchedBytes.addingSaturated(result.bytes)
        let brought = known[fetch.content]?.broughtBytes ?? 0
        known[fetch.content]?.broughtBytes = brought.addingSaturated(result.bytes)
        switch result.ending {
        case .stored: note(fetch)
        case .failed: rest(fetch.content, reason ?? "the fetch failed", at: now)
        case .cancelled: break
        }
        return plan(at: now)
    }

    /// So many bytes from the start of a part of the active item are there; `.max` for all.
    package mutating func noticed(part: Int, bytes: Int64) {
        let content = active
        let before = known[content]?.present[part] ?? 0
        known[content]?.present[part] = max(before, bytes)
    }

    /// Time has passed; to be called about every second while `needsTicks`.
    package mutating func tick(at now: Double) -> [FeedAction] { plan(at: now) }

    private mutating func note(_ fetch: Running) {
        guard let part = known[fetch.content]?.plan?.parts[safe: fetch.part] else { return }
        known[fetch.content]?.failures = 0
        known[fetch.content]?.reason = nil
        let whole = fetch.range == nil || fetch.range == part.piece.range
        let start = part.piece.range?.lowerBound ?? 0
        let reached = whole ? .max : (fetch.range?.upperBound ?? 0) - start
        let before = known[fetch.content]?.present[fetch.part] ?? 0
        known[fetch.content]?.present[fetch.part] = max(before, reached)
    }

    /// Waits longer after each failure, up to half a minute.
    private mutating func rest(_ content: Int, _ reason: String, at now: Double) {
        let failures = (known[content]?.failures ?? 0) + 1
        known[content]?.failures = failures
        known[content]?.restsUntil = now + min(30, 0.5 * Double(1 << min(failures, 6)))
        known[content]?.reason = reason
    }

    /// Keeps the hundred items that were looked after near the viewer.
    private mutating func forget() {
        guard known.count > 200 else { return }
        let kept = Set(window.map(\.content)).union(running.values.map(\.content))
        // What was refused stays known, or it would be asked for again at once.
        for (content, state) in known
        where !kept.contains(content) && (state.refusals == 0 || known.count > 2_000) {
            if !state.wasActive {
                forgottenWaste = forgottenWaste.addingSaturated(state.broughtBytes)
            }
            known[content] = nil
        }
    }

    // MARK: Planning

    /// Brings what runs in line with what is wanted.
    private mutating func plan(at now: Double) -> [FeedAction] {
        var actions = reads(at: now)
        let wants = self.wants(at: now)
        let hurried = hurriedNeighbour(at: now)
        var busy = 0
        for (id, fetch) in running where !fetch.isCancelled {
            let wanted = wants.first { $0.content == fetch.content && $0.part == fetch.part }
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
            // Keys and sections are small: they wait for a round trip, and take nothing of the line.
            let isSmall = isStructure(want.content, want.part)
            guard busy < (isSmall ? 2 : 1) * parameters.parallel else { continue }
            if let hurried, !isSmall, ![active, hurried].contains(want.content) { continue }
            let large = ofItem.values.count { !isStructure($0.content, $0.part) }
            guard isSmall || large < parameters.parallelOfItem else { continue }
            lastID += 1
            let id = AheadID(lastID)
            running[id] = Running(
                content: want.content, part: want.part, range: want.range, yields: want.yields)
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
