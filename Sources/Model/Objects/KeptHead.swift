// Titles of which only the head is kept: so many segments from the start; the rest is passed
// through, or left to the player and the origin.
package import HLS
import HTTP

/// Marks the links of one playlist that lead behind the head.
package struct KeptHead {
    private let count: Int
    private let leavesRest: Bool
    private var seen = 0

    /// Says in a link that what it leads to is not kept.
    ///
    /// A player that drops it gets the same bytes, and they are kept all the same.
    private static let mark = "keep=0"
    package static let suffix = Array("?\(mark)".utf8)
    /// The same behind a link that has a query.
    package static let furtherSuffix = Array("&\(mark)".utf8)
    private static let markBytes = Array(mark.utf8)

    /// Nil where all is kept: without the setting, and of streams that go on growing, of which the
    /// head is no beginning.
    package init?(_ settings: ProxySettings, count: Int?, of body: [UInt8]) {
        guard let count, Self.hasEnd(body) else { return nil }
        self.count = count
        leavesRest = settings.leavesRestToOrigins
    }

    /// Whether the list says that it is whole, on any line.
    private static func hasEnd(_ body: [UInt8]) -> Bool {
        let tag = Array("#EXT-X-ENDLIST".utf8)
        var end = body.count
        while let hash = body[..<end].lastIndex(of: 0x23) {
            if body[hash...].starts(with: tag) { return true }
            end = hash
        }
        return false
    }

    /// What becomes of a name in the list.
    package enum Link {
        /// A link to us.
        case kept
        /// A link to us that says that what it leads to is not kept: the link and `suffix`.
        case unkept
        /// The origin's URL.
        case origins
    }

    /// Which link a name gets; to be asked of each, in their order.
    package mutating func link(of reference: ResourceReference) -> Link {
        guard reference.tag == .inf else { return .kept }
        seen += 1
        guard seen > count else { return .kept }
        return leavesRest ? .origins : .unkept
    }

    /// Whether a request is for what is not kept.
    static func isUnkept(_ request: RequestHead) -> Bool {
        request.targetContains(markBytes)
            && request.queryItems.contains { $0.rawName == "keep" && $0.rawValue == "0" }
    }
}
