// Several ranges in one response: `multipart/byteranges` (RFC 9110 section 14.6).
import HTTP
import HTTPServer
import Reactor

/// The parts of a response and the text between them.
struct Multipart {
    let ranges: [ResolvedRange]
    private let boundary: String
    private let heads: [[UInt8]]
    private let end: [UInt8]

    /// Makes the parts of a body.
    ///
    /// - Parameters:
    ///   - ranges: two or more, each within the body.
    ///   - total: the length of the whole body in bytes.
    ///   - contentType: the type of the whole body, repeated for each part; nil for none.
    init(_ ranges: [ResolvedRange], total: Int64, contentType: String?) {
        self.ranges = ranges
        // Random, so that no body can be crafted to contain it.
        let boundary = "sluice-" + String(UInt64.random(in: .min ... .max), radix: 36)
        self.boundary = boundary
        let type = contentType.map { "Content-Type: \($0)\r\n" } ?? ""
        heads = ranges.enumerated().map { place, range in
            let before = place == 0 ? "" : "\r\n"
            let content = ContentRange(range, total: total).description
            return Array(
                "\(before)--\(boundary)\r\n\(type)Content-Range: \(content)\r\n\r\n".utf8)
        }
        end = Array("\r\n--\(boundary)--\r\n".utf8)
    }

    var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// The length of the response's content.
    var length: Int64 {
        heads.reduce(Int64(end.count)) { $0 + Int64($1.count) }
            + ranges.reduce(Int64(0)) { $0 + $1.length }
    }

    /// Returns the text before a part; after the last one, the end of the content.
    fileprivate func text(before part: Int) -> [UInt8] { part < heads.count ? heads[part] : end }

    /// Returns the ranges to send: the satisfiable ones, with overlapping and adjacent ones merged.
    ///
    /// They keep the requested order, as far as merging allows.
    static func combined(_ specs: [ByteRangeSpec], total: Int64) -> [ResolvedRange] {
        var kept: [ResolvedRange] = []
        for range in specs.compactMap({ $0.resolve(total: total) }) {
            var merged = range
            kept.removeAll { other in
                guard other.first <= merged.last + 1, merged.first <= other.last + 1 else {
                    return false
                }
                merged = ResolvedRange(
                    first: min(other.first, merged.first), last: max(other.last, merged.last))
                return true
            }
            kept.append(merged)
        }
        return kept
    }
}

/// Reads one part after another.
///
/// Bound to its server loop.
final class MultipartSource: BodySource {
    private let multipart: Multipart
    private let open: (ResolvedRange) -> Reader
    /// The index of the next part, or of the one being read.
    private var part = 0
    private var text: ArraySlice<UInt8>
    private var reader: Reader?

    var wake: ((EventLoop) -> Void)? {
        didSet { if let wake { reader?.wake = wake } }
    }

    /// Makes a source of parts; `open` makes their readers, one at a time.
    init(_ multipart: Multipart, open: @escaping (ResolvedRange) -> Reader) {
        self.multipart = multipart
        self.open = open
        text = multipart.text(before: 0)[...]
    }

    func next(limit: Int) -> BodyStep {
        while true {
            if !text.isEmpty { return .bytes(text.prefix(limit)) }
            guard part < multipart.ranges.count else { return .end }
            let reading = reader ?? open(multipart.ranges[part])
            reader = reading
            let step = reading.next(limit: limit)
            guard case .end = step else { return step }
            reading.cancel()
            reader = nil
            part += 1
            text = multipart.text(before: part)[...]
        }
    }

    func advance(by count: Int) {
        if text.isEmpty { reader?.advance(by: count) } else { text.removeFirst(count) }
    }

    func recover(fromReadError code: CInt) -> Bool {
        reader?.recover(fromReadError: code) ?? false
    }

    func cancel() {
        wake = nil
        reader?.cancel()
        reader = nil
    }
}
