import CachePolicy
package import HTTP

/// What may be kept where other nodes, and their players, get it.
package enum SharingRule {
    /// Why something is not shared; the raw value is what logs show.
    package enum Refusal: String, Sendable, CaseIterable {
        /// HTTP's rules apply (mounts, children): the second level keeps films.
        case rules
        /// It belongs to one session, or was got with its headers or cookies.
        case viewer
        /// The origin said `private` or `no-store`.
        case isPrivate = "private"
        /// A playlist that changes, or was got with a cookie of its own.
        case live
        case key
        /// Not the usual response: another status, a part, too large, or of unknown length.
        case form
    }

    /// What is known of a stored response.
    package struct Facts: Sendable {
        package var followsHTTP = false
        package var isOfViewer = false
        /// Of the response.
        package var fields = Fields()
        package var isPlain200 = true
        package var setsCookies = false
        /// Nil for what is no playlist.
        package var playlistIsLive: Bool?
        package var isKey = false
        package var sharesKeys = false

        package init() {}
    }

    /// Nil if it may be shared.
    package static func refusal(_ facts: Facts) -> Refusal? {
        if facts.followsHTTP { return .rules }
        if facts.isOfViewer { return .viewer }
        if isPrivate(facts.fields) { return .isPrivate }
        if facts.isKey, !facts.sharesKeys { return .key }
        if let isLive = facts.playlistIsLive, isLive || facts.setsCookies { return .live }
        if !facts.isPlain200 { return .form }
        return nil
    }

    /// True if the origin restricts a response to one viewer (RFC 9111 section 5.2.2), or it depends on
    /// what one viewer sent.
    private static func isPrivate(_ fields: Fields) -> Bool {
        let control = CacheControl(fields)
        if control.noStore || control.private != nil { return true }
        return fields.listMembers("Vary").contains {
            ["*", "cookie", "authorization"].contains($0.lowercased())
        }
    }
}
