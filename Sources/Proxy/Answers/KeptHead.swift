/// Titles of which only the head is kept: so many segments from the start; the rest is passed
/// through, or left to the player and the origin.
import HLS
import HTTP
import URISyntax

/// Marks the links of one playlist that lead behind the head.
struct KeptHead {
    private let count: Int
    private let leavesRest: Bool
    private var seen = 0

    /// Says in a link that what it leads to is not kept.
    ///
    /// A player that drops it gets the same bytes, and they are kept all the same.
    private static let mark = "keep=0"
    private static let suffix = Array("?\(mark)".utf8)
    private static let markBytes = Array(mark.utf8)

    /// Nil where all is kept: without the setting, and of streams that go on growing, of which the
    /// head is no beginning.
    init?(_ settings: ProxySettings, count: Int?, of body: [UInt8]) {
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

    /// Writes the link of what lies behind the head.
    ///
    /// - Parameters:
    ///   - reference: what the list names; to be told of each, in their order.
    ///   - output: where the link goes.
    ///   - link: writes a link to us.
    /// - Returns: false for what is kept; nothing is written then.
    mutating func write(
        _ reference: ResourceReference, to output: inout [UInt8], link: (inout [UInt8]) -> Void
    ) -> Bool {
        guard reference.tag == .inf else { return false }
        seen += 1
        guard seen > count else { return false }
        if leavesRest {
            output.append(contentsOf: reference.url.bytes)
        } else {
            link(&output)
            output.append(contentsOf: Self.suffix)
        }
        return true
    }

    /// Whether a request is for what is not kept.
    static func isUnkept(_ request: RequestHead) -> Bool {
        request.targetContains(markBytes)
            && request.queryItems.contains { $0.rawName == "keep" && $0.rawValue == "0" }
    }
}
