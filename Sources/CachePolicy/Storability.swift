// Whether a response may be stored (RFC 9111 section 3, with additions for playlists).
package import HTTP

/// The decision whether a response is stored, with the reason by its stable name.
package enum Storability: Equatable, Sendable {
    case store
    /// Streamed through an unnamed file and discarded.
    case streamOnly(NoStoreReason)

    /// The reason why a response is not stored; the raw value is what logs and `Cache-Status` show.
    package enum NoStoreReason: String, Sendable, CaseIterable {
        case noStore = "no-store"
        case isPrivate = "private"
        case status = "status"
        case varyStar = "vary-star"
        /// It depends on the client, and is stored in one form only.
        case vary = "vary"
        case authorization = "authorization"
        case noFreshness = "no-freshness"
        /// It sets a cookie, and the origin does not say that it may be stored: the cookie may identify
        /// the client.
        case setsCookie = "sets-cookie"
        /// An unsafe request came between, or the response is to an unsafe method.
        case method = "method"
        /// It has no content and states no lifetime: packagers answer so for a segment whose content is
        /// not written yet.
        case empty = "empty"
        /// Neither budget nor disk has room for it.
        case noRoom = "no-room"
        /// Another request stores the body that it may be a part of, and nothing proves that it is.
        case unproven
        /// It has no length, ends with its connection, and has no strong validator, with which the
        /// origin could be asked whether it was cut (RFC 9112 section 8).
        case noLength = "no-length"
        /// `must-understand` with a status whose caching rules are not implemented.
        case mustUnderstand = "must-understand"
        /// The request said `no-store`.
        case requestNoStore = "request-no-store"
        /// It is not meant for the store: a segment after those of `--keep-head`, or an answer to
        /// delivery directives. What the origin says is then not looked at.
        case notKept = "not-kept"

        /// True if a later response may be stored although nothing else changes: this one lacked
        /// room, or proof that it belongs to a body.
        package var mayPass: Bool { self == .noRoom || self == .unproven }

        /// True if the response may have been made for the client that asked for it.
        package var isOfOneClient: Bool {
            switch self {
            case .noStore, .isPrivate, .varyStar, .vary, .authorization, .setsCookie, .notKept: true
            case .status, .noFreshness, .method, .empty, .noRoom, .unproven, .noLength,
                .mustUnderstand, .requestNoStore:
                false
            }
        }
    }

    /// The input of the decision.
    package struct Question: Sendable {
        package var policy: Policy
        package var requestFields: Fields
        package var status: HTTPStatus
        package var responseFields: Fields
        package var kind: CacheKind
        /// The length of the body; nil while unknown.
        package var length: Int64?
        /// True for what is stored in one form for all clients, whatever `Vary` names: the
        /// playlists of a mount.
        ///
        /// What was made for one client is then stored under no policy.
        package var hasOneForm = false

        package init(
            policy: Policy, requestFields: Fields, status: HTTPStatus, responseFields: Fields,
            kind: CacheKind, length: Int64? = nil
        ) {
            self.policy = policy
            self.requestFields = requestFields
            self.status = status
            self.responseFields = responseFields
            self.kind = kind
            self.length = length
        }
    }

    /// Decides about the response to a GET.
    package static func decide(_ question: Question) -> Storability {
        if question.policy != .rfc {
            let control = CacheControl(question.responseFields)
            if control.noStore { return .streamOnly(.noStore) }
            if question.hasOneForm, let reason = refusalForOthers(question, control) {
                return .streamOnly(reason)
            }
            return mediaDecision(question)
        }
        let control = question.kind.directives(of: question.responseFields)
        if let reason = refusal(question, control.control) { return .streamOnly(reason) }
        return lifetimeDecision(question, control)
    }

    /// True if a response to a revalidation ends the use of the stored one, although it is not
    /// stored itself: a full response means that the stored one is not suitable (RFC 9111 section
    /// 4.3.3).
    ///
    /// What depends on the client or on the moment says nothing of the stored response.
    ///
    /// - Parameters:
    ///   - status: the status of the response.
    ///   - reason: why it is not stored.
    /// - Returns: false if the stored response may be used further on.
    package static func endsUseOfStored(_ status: HTTPStatus, _ reason: NoStoreReason) -> Bool {
        switch reason {
        case .requestNoStore, .authorization, .noRoom, .unproven, .noLength, .empty: return false
        case .noStore, .isPrivate, .status, .varyStar, .vary, .noFreshness, .setsCookie, .method,
            .mustUnderstand, .notKept:
            break
        }
        switch status.rawValue {
        case 200...205, 300...303, 307, 308: return true
        case 401, 407, 408, 416, 421, 425, 429: return false
        case 400...499: return true
        default: return false
        }
    }

    /// Returns a reason not to store that is independent of the lifetime (RFC 9111 section 3).
    private static func refusal(_ question: Question, _ control: CacheControl) -> NoStoreReason? {
        if RequestDirectives(question.requestFields).noStore { return .requestNoStore }
        // None of these is a full representation; a usable part is stored as a 200 with holes.
        let never: [HTTPStatus] = [.notModified, .partialContent, .rangeNotSatisfiable]
        guard !question.status.isInformational, !never.contains(question.status) else {
            return .status
        }
        if control.mustUnderstand {
            guard StatusRules.isUnderstood(question.status) else { return .mustUnderstand }
        } else if control.noStore {
            return .noStore
        }
        return refusalForOthers(question, control)
    }

    /// Returns why other clients must not get a response; nil if they may.
    private static func refusalForOthers(
        _ question: Question, _ control: CacheControl
    ) -> NoStoreReason? {
        let selecting = SelectingFields(question.responseFields)
        if selecting.isAny { return .varyStar }
        if question.hasOneForm, selecting.tellsClientsApart { return .vary }
        guard question.kind.isShared else { return nil }
        if control.private == .response { return .isPrivate }
        if question.requestFields.contains(.authorization), !allowsSharing(control) {
            return .authorization
        }
        return nil
    }

    /// True if an origin allows that the response to a request with credentials is given to clients
    /// without them (RFC 9111 section 3.5).
    package static func allowsSharing(_ control: CacheControl) -> Bool {
        control.private != .response
            && (control.public || control.mustRevalidate || control.sharedMaxAge != nil)
    }

    /// Decides for playback: full or partial content is stored, errors never are.
    private static func mediaDecision(_ question: Question) -> Storability {
        switch question.status.rawValue {
        case 200, 203, 206: question.length == 0 ? emptyDecision(question) : .store
        default: .streamOnly(.status)
        }
    }

    private static func emptyDecision(_ question: Question) -> Storability {
        let directives = question.kind.directives(of: question.responseFields)
        let isExplicit =
            directives.statedLifetime(question.kind) != nil
            || question.responseFields.contains(.expires)
        return isExplicit ? .store : .streamOnly(.empty)
    }

    private static func lifetimeDecision(
        _ question: Question, _ directives: ResponseDirectives
    ) -> Storability {
        let fields = question.responseFields
        let isExplicit =
            directives.statedLifetime(question.kind) != nil || directives.control.public
            || (!directives.isTargeted && fields.contains(.expires))
        if isExplicit { return .store }
        guard StatusRules.isHeuristicallyCacheable(question.status) else {
            return .streamOnly(.status)
        }
        // Without a validator it could never be reused.
        let hasValidator = fields.contains(.etag) || fields.contains(.lastModified)
        guard hasValidator else { return .streamOnly(.noFreshness) }
        // A heuristic must not give one client's session to others (RFC 9111 section 7.3).
        let setsCookie = question.kind.isShared && fields.contains(.setCookie)
        return setsCookie ? .streamOnly(.setsCookie) : .store
    }
}
