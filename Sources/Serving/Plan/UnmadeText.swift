import Model

/// What follows for a request whose playlist or JSON text could not be made from what is stored.
enum UnmadeText: Equatable, Sendable {
    /// Too many texts wait, or what the names in this one mean cannot be read now, which says
    /// nothing about the text: the request fails, and the text stays stored.
    case refuse
    /// The disk cannot read what the origin just sent or confirmed: it is removed, and fetched
    /// again.
    case fetchAgain
    /// What the origin just sent counts as its failure.
    ///
    /// It is removed, unless other sessions may be able to read it.
    case failOrigin(removes: Bool)
    /// The stored text is planned with as an unreadable one.
    case planUnreadable

    /// - Parameters:
    ///   - failure: why it could not be made.
    ///   - reply: the reply of the origin that brought the text; nil for a text that was stored.
    ///   - hasFetchedAgain: whether this request has fetched a text again, which is done once.
    init(_ failure: ProxyFailure, _ reply: RequestFacts.Reply?, hasFetchedAgain: Bool) {
        if failure == .textsWait || failure == .windowUnread {
            self = .refuse
        } else if failure.fault == .us, reply != nil, !hasFetchedAgain {
            self = .fetchAgain
        } else if let reply, !reply.isRevalidated {
            self = .failOrigin(removes: !failure.dependsOnReader)
        } else {
            self = .planUnreadable
        }
    }
}
