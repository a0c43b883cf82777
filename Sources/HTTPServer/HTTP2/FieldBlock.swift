// The fields of one response in HTTP/2, out of the lines that HTTP/1.1 would send: pure.
import CNGHTTP2
import HTTP
import Numbers
import URISyntax

/// The field lines of a response (RFC 9113 section 8.3.2): one storage, and where names and values
/// lie in it; the status comes first.
struct FieldBlock {
    struct Entry {
        let name: Range<Int>
        let value: Range<Int>
    }

    private(set) var storage: [UInt8] = []
    private(set) var entries: [Entry] = []

    /// Writes a head.
    ///
    /// - Parameters:
    ///   - head: What the handler answers.
    ///   - length: Bytes of content that are told; nil for none told.
    ///   - dateLine: The `Date` field line with its CRLF; nil for an interim head.
    /// - Throws: Where the status, a name or a value is ill-formed.
    init(
        _ head: ResponseHead, length: Int64?, dateLine: [UInt8]?
    ) throws(ResponseHeadError) {
        var head = head
        var isDated = head.written?.isDated ?? false
        if !head.fields.isEmpty {
            for name in Self.ofConnections where head.fields.contains(name) {
                head.fields.remove(name)
            }
            if length != nil { head.fields.remove(.contentLength) }
            isDated = isDated || head.fields.contains(.date)
        }
        head.version = .http11
        storage.reserveCapacity(512)
        try serialiseLines(head, into: &storage)
        if let dateLine, !isDated { storage.append(contentsOf: dateLine) }
        if let length {
            storage.append(contentsOf: "content-length: ".utf8)
            appendDecimal(length, to: &storage)
            storage.append(contentsOf: "\r\n".utf8)
        }
        entries = Self.lines(of: storage.span)
    }

    /// Finds the lines; what was written is well-formed, so that nothing needs to be checked.
    private static func lines(of bytes: Span<UInt8>) -> [Entry] {
        var found: [Entry] = []
        found.reserveCapacity(20)
        // "HTTP/1.1 200 OK": the status is the three digits of its line.
        var index = 12
        while index < bytes.count, bytes[index] != ASCII.lineFeed { index += 1 }
        index += 1
        while index < bytes.count {
            let nameStart = index
            while bytes[index] != ASCII.colon { index += 1 }
            let name = nameStart..<index
            index += 2
            let valueStart = index
            while bytes[index] != ASCII.carriageReturn { index += 1 }
            found.append(Entry(name: name, value: valueStart..<index))
            index += 2
        }
        return found
    }

    /// Where the status code's digits lie.
    var status: Range<Int> { 9..<12 }

    /// The value of the first field of a name in lower case; nil where there is none.
    func value(of name: StaticString) -> [UInt8]? {
        for entry in entries where entry.name.count == name.utf8CodeUnitCount {
            let wanted = UnsafeBufferPointer(start: name.utf8Start, count: entry.name.count)
            if zip(storage[entry.name], wanted).allSatisfy({ ASCII.lowercased($0) == $1 }) {
                return Array(storage[entry.value])
            }
        }
        return nil
    }

    /// What speaks of one connection has no place in HTTP/2 (RFC 9113 section 8.2.2).
    private static let ofConnections: [FieldName] = [.connection, .keepAlive, .transferEncoding]
}

extension FieldBlock {
    /// The fields as nghttp2 takes them, which copies names in lower case, and values.
    func withPairs<Result>(_ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result) -> Result {
        storage.withUnsafeBufferPointer { bytes in
            // Never written to: the type is C's.
            let start = UnsafeMutablePointer(mutating: bytes.baseAddress)
            return FieldBlock.statusName.withUTF8Buffer { statusName in
                withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: entries.count + 1) {
                    pairs in
                    pairs.initializeElement(
                        at: 0,
                        to: nghttp2_nv(
                            name: UnsafeMutablePointer(mutating: statusName.baseAddress),
                            value: start.map { $0 + status.lowerBound }, namelen: 7,
                            valuelen: status.count, flags: 0))
                    for (index, entry) in entries.enumerated() {
                        pairs.initializeElement(
                            at: index + 1,
                            to: nghttp2_nv(
                                name: start.map { $0 + entry.name.lowerBound },
                                value: start.map { $0 + entry.value.lowerBound },
                                namelen: entry.name.count, valuelen: entry.value.count, flags: 0))
                    }
                    return body(UnsafeBufferPointer(pairs))
                }
            }
        }
    }

    private static let statusName: StaticString = ":status"
}
