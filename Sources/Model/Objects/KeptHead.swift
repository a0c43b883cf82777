// Titles of which only the first segments are stored; the rest is passed through, or fetched by the
// player from the origin.
package import HLS
import HTTP
import URISyntax

/// Marks the links of one playlist that lead beyond the stored head.
package struct KeptHead {
    private let count: Int
    private let leavesRest: Bool
    private var seen = 0

    /// Marks a link whose target is not to be stored.
    ///
    /// A player that drops the mark gets the same bytes, but they are stored.
    private static let mark = "keep=0"
    package static let suffix = Array("?\(mark)".utf8)
    /// The mark for a link that already has a query.
    package static let furtherSuffix = Array("&\(mark)".utf8)
    private static let markBytes = Array(mark.utf8)

    /// Fails where everything is stored: without the setting, and for a list that has not ended,
    /// since its first segments are not the beginning of the title.
    package init?(_ settings: ProxySettings, count: Int?, of body: [UInt8]) {
        guard let count, PlaylistTags.contains("#EXT-X-ENDLIST", in: body) else { return nil }
        self.count = count
        leavesRest = settings.leavesRestToOrigins
    }

    /// The kind of link that a name in the list gets.
    package enum Link {
        /// A link to Sluice.
        case kept
        /// A link to Sluice with `suffix`, so that its target is not stored.
        case unkept
        /// The origin's URL.
        case origins
    }

    /// Returns the link of a name; must be called once for each name, in list order.
    package mutating func link(of reference: ResourceReference) -> Link {
        guard reference.tag == .inf else { return .kept }
        seen += 1
        guard seen > count else { return .kept }
        // The origin does not know what a stand-in means.
        return leavesRest && !reference.url.hasStandIn ? .origins : .unkept
    }

    /// True if a request for a link is marked as not to be stored.
    static func isUnkept(_ request: RequestHead) -> Bool {
        request.targetContains(markBytes)
            && request.queryItems.contains { $0.rawName == "keep" && $0.rawValue == "0" }
    }
}
