// The properties of a resource that plans depend on, together with what is stored of it.
import CachePolicy
import HLS
import HTTP
import Model

extension Resource {
    /// True if a stored response is parsed and rewritten for each session.
    func isRewritten(_ facts: ObjectFacts) -> Bool { facts.head.isPlaylist || role == .json }

    /// Tells whether a stored response is a playlist that can have an offline form.
    ///
    /// An extended window marks its own gaps, and so do the playlists of a recording.
    ///
    /// - Parameters:
    ///   - facts: the facts of the response.
    ///   - isWindow: whether it is served as an extended window, which only playlists of sessions
    ///     with `dvr=` are; nil if its text was not read yet.
    /// - Returns: false as long as it may be a window.
    func mayTakeOfflineForm(_ facts: ObjectFacts, isWindow: Bool?) -> Bool {
        guard facts.head.isPlaylist, role != .json else { return false }
        return !session.isShifted || (isWindow == false && session.shift.recording == nil)
    }

    /// True if a player in the middle of a title may wait for the return of its origin to get it.
    ///
    /// A title that is opened fails at once, and a list is served in another form. Clients of a
    /// mount decide themselves, and what a live list announces is bounded by its origin.
    ///
    /// - Parameter start: the first byte that is needed.
    /// - Returns: false for what no list names, unless it is needed from the middle on.
    func mayAwaitReturn(from start: Int64) -> Bool {
        guard !followsHTTP, !isVerbatim, policy != .offline, isSteady, !isNamedAsText else {
            return false
        }
        return role != nil || start > 0
    }

    /// True if HTTP's rules apply, and the head has the type of a playlist, which is rewritten
    /// whatever its name.
    func isPlaylist(by head: StoredHead) -> Bool {
        followsHTTP && role.isOpen && !isVerbatim && head.status == .ok
            && ContentTypes.isPlaylist(head.fields)
    }

    /// True if a stored playlist may have been made for one client of a mount: the clients have one
    /// session, and may tell themselves apart by any field.
    ///
    /// Where HTTP's rules apply, they have decided who may get it.
    func isOfOneClient(_ facts: ObjectFacts, _ mountKind: CacheKind) -> Bool {
        !followsHTTP && isMounted && mountKind.isShared && facts.head.isPlaylist
            && facts.isOfOneClient
    }

    /// True if a child cache asks for a resource that may change under its name; its content is not
    /// read here.
    var isTextOfChild: Bool { isVerbatim && (role == nil || role == .key) }

    /// Returns how fresh a stored response is; also for repeated hits, so that an input is read
    /// only if it counts.
    func freshness(
        _ facts: ObjectFacts, _ playlist: PlaylistFacts?,
        _ circumstances: @autoclosure () -> RequestCircumstances,
        isOfFormerEpoch: @autoclosure () -> Bool, isNameGivenAway: @autoclosure () -> Bool,
        isLiveSession: @autoclosure () -> Bool, isPinned: @autoclosure () -> Bool
    ) -> Freshness {
        if playlist == nil {
            if isOfFormerEpoch() { return .stale(.epoch) }
            if holdsWhileKept { return .fresh(seconds: nil) }
            // The origin has something else under the name, which would replace it.
            if isNameGivenAway() { return .fresh(seconds: nil) }
        }
        var question = freshnessQuestion(facts, playlist, circumstances())
        // Whether a list that a child asks for is live is not known here: nothing is guessed of it.
        if isTextOfChild, question.policy == .rfc,
            question.rules.lifetimeSource == .heuristic
        {
            return .stale(.expired)
        }
        // Live streams change keys under one URL: HTTP decides how long one holds.
        if role == .key, question.policy == .media, isLiveSession() { question.policy = .rfc }
        let freshness = Freshness.decide(question)
        // A pinned title stays as it is: the list of another broadcast would replace it.
        if case .stale(.ended) = freshness, isPinned() { return .fresh(seconds: nil) }
        return freshness
    }
}
