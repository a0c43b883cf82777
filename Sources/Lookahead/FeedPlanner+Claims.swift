/// What the planner takes for stored: it may have been evicted, purged or cleared since.
extension FeedPlanner {
    /// A part of an item that the planner takes for present.
    package struct Claim: Sendable, Equatable {
        package let content: Int
        package let part: Int
        package let piece: MediaPiece
        /// The bytes from the part's start that are present; `.max` for all.
        package let bytes: Int64
    }

    /// The most claims of one comparison with the store.
    private static let mostClaims = 512

    /// Returns what the items of the window rely on, the nearest first: what the active item's
    /// player needs next, and the beginnings of the others.
    package func claims(at now: Double) -> [Claim] {
        var claims: [Claim] = []
        for member in window {
            guard let state = known[member.content], let plan = state.plan else { continue }
            let parts =
                member.content == active
                ? Array(partsAhead(of: state, plan, at: now)) : plan.head(parameters).map(\.index)
            for part in parts {
                guard let bytes = state.present[part] else { continue }
                guard claims.count < Self.mostClaims else { return claims }
                claims.append(
                    Claim(
                        content: member.content, part: part, piece: plan.parts[part].piece,
                        bytes: bytes))
            }
        }
        return claims
    }

    /// Returns the parts of the active item that are to be there by now and that its player, which
    /// fetches itself what it requests, has not requested.
    func partsAhead(
        of state: FeedContent, _ plan: FeedPlan, at now: Double
    ) -> Range<Int> {
        let reach = parameters.activeSeconds + state.watched(at: now)
        return plan.parts.indices.dropFirst((state.playedPart ?? -1) + 1).prefix {
            plan.parts[$0].begins < reach
        }
    }

    /// Records which claims do not hold: what was lost is fetched again.
    ///
    /// Each item immediately only once, and then after a pause that grows from a minute to ten,
    /// until its viewer reaches it: neighbours that displace each other in a small cache would
    /// otherwise be fetched again and again.
    package mutating func lost(_ claims: [Claim], at now: Double) -> [FeedAction] {
        guard !claims.isEmpty else { return [] }
        for claim in claims { known[claim.content]?.lose(claim.part) }
        for content in Set(claims.map(\.content)) { lose(content, at: now) }
        return plan(at: now)
    }

    private mutating func lose(_ content: Int, at now: Double) {
        guard let state = known[content] else { return }
        known[content]?.losses = min(state.losses + 1, 100)
        // Its playlists may be lost too, and parts behind its beginning, which are not compared.
        // The active item's player has its playlists.
        if content != active {
            known[content]?.unseenBytes = [:]
            known[content]?.knowledge = .unknown
        }
        guard state.losses > 0 else { return }
        let pause = min(600, 30 * Double(1 << min(state.losses, 5)))
        known[content]?.restsUntil = max(state.restsUntil, now + pause)
        known[content]?.reason =
            "the store has removed it repeatedly: the cache is too small, or was cleared"
    }

    /// Forgets what was lost of an item that its viewer has reached.
    mutating func forgive(_ content: Int, at now: Double) {
        guard let state = known[content], state.losses > 0 else { return }
        known[content]?.losses = 0
        known[content]?.restsUntil = min(state.restsUntil, now)
    }
}
