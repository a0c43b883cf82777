/// Whether a response may be stored (RFC 9111 section 3, and what playlists add to it).
package import HTTP

/// The answer, with the reason by its stable name.
package enum Storability: Equatable, Sendable {
    case store
    /// Streamed through an unnamed file and forgotten.
    case streamOnly(NoStoreReason)

    /// Why a response is not stored; the raw value is what logs and `Cache-Status` show.
    package enum NoStoreReason: String, Sendable, CaseIterable {
        case noStore = "no-store"
        case isPrivate = "private"
        case status = "status"
        case varyStar = "vary-star"
        /// The response depends on request fields other than those that we normalise.
        case vary
        case authorization = "authorization"
        case noFreshness = "no-freshness"
        case method = "method"
    }

    /// What the decision is made from.
    package struct Question: Sendable {
        package var policy: Policy
        package var requestFields: Fields
        package var status: HTTPStatus
        package var responseFields: Fields
        /// True when others than one person use this daemon.
        package var isShared: Bool

        package init(
            policy: Policy, requestFields: Fields, status: HTTPStatus, responseFields: Fields,
            isShared: Bool
        ) {
            self.policy = policy
            self.requestFields = requestFields
            self.status = status
            self.responseFields = responseFields
            self.isShared = isShared
        }
    }

    /// Decides for the response to a GET.
    package static func decide(_ question: Question) -> Storability {
        let control = CacheControl(question.responseFields)
        if control.noStore { return .streamOnly(.noStore) }
        if question.policy != .rfc { return mediaDecision(question) }
        if CacheControl(question.requestFields).noStore { return .streamOnly(.noStore) }
        let vary = question.responseFields.listMembers(.vary).map { HTTP.ASCII.lowercased($0) }
        if vary.contains("*") { return .streamOnly(.varyStar) }
        // Codings are undone or not asked for, and CORS is ours: these two do not split the cache.
        if vary.contains(where: { $0 != "accept-encoding" && $0 != "origin" }) {
            return .streamOnly(.vary)
        }
        if question.isShared {
            if control.private != nil { return .streamOnly(.isPrivate) }
            if question.requestFields.contains(.authorization),
                !control.public, !control.mustRevalidate, control.sharedMaxAge == nil
            {
                return .streamOnly(.authorization)
            }
        }
        return rfcStatusDecision(question, control)
    }

    /// Playback: whole or partial content is kept, errors never are.
    private static func mediaDecision(_ question: Question) -> Storability {
        switch question.status.rawValue {
        case 200, 203, 206: .store
        default: .streamOnly(.status)
        }
    }

    private static func rfcStatusDecision(_ question: Question, _ control: CacheControl)
        -> Storability
    {
        let understood: Set<UInt16> = [
            200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501,
        ]
        let status = question.status.rawValue
        guard understood.contains(status) else { return .streamOnly(.status) }
        let hasExplicit = control.hasLifetime || question.responseFields.contains(.expires)
        let hasValidator =
            question.responseFields.contains(.etag)
            || question.responseFields.contains(.lastModified)
        let heuristic: Set<UInt16> = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
        if hasExplicit || control.public { return .store }
        if heuristic.contains(status), hasValidator { return .store }
        return .streamOnly(.noFreshness)
    }
}
