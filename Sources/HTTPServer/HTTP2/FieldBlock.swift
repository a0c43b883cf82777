// The fields of one HTTP/2 response, made from the lines that HTTP/1.1 would send: pure.
import CNGHTTP2
import HTTP
import Numbers
import URISyntax

/// The field lines of a response (RFC 9113 section 8.3.2): one storage, and the ranges of names and
/// values in it; the status comes first.
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
    ///   - head: the handler's response head.
    ///   - length: the content length to state in bytes; nil to state none.
    ///   - dateLine: the `Date` field line with its CRLF; nil for an interim head.
    /// - Throws: `ResponseHeadError` if the status, a name or a value is ill-formed.
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

    /// Finds the field lines; they were just serialised, so they need no checks.
    private static func lines(of bytes: Span<UInt8>) -> [Entry] {
        var found: [Entry] = []
        found.reserveCapacity(20)
        // "HTTP/1.1 200 OK": only the three digits of the status line are used.
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

    /// The range of the status code's digits.
    var status: Range<Int> { 9..<12 }

    /// Returns the value of the first field with a lower-case name; nil if there is none.
    func value(of name: StaticString) -> [UInt8]? {
        for entry in entries where entry.name.count == name.utf8CodeUnitCount {
            let wanted = UnsafeBufferPointer(start: name.utf8Start, count: entry.name.count)
            if zip(storage[entry.name], wanted).allSatisfy({ ASCII.lowercased($0) == $1 }) {
                return Array(storage[entry.value])
            }
        }
        return nil
    }

    /// Connection-specific fields, which HTTP/2 forbids (RFC 9113 section 8.2.2).
    private static let ofConnections: [FieldName] = [.connection, .keepAlive, .transferEncoding]
}

extension FieldBlock {
    /// Passes the fields in nghttp2's form, which copies values and lower-cased names.
    func withPairs<Result>(_ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result) -> Result {
        storage.withUnsafeBufferPointer { bytes in
            // Mutable only in C's type; nghttp2 does not write to it.
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
                                namelen: entry.name.count, valuelen: entry.value.count,
                                flags: isDate(bytes, entry.name) ? FieldBlock.notKept : 0))
                    }
                    return body(UnsafeBufferPointer(pairs))
                }
            }
        }
    }

    /// True for the name of the field that differs between segments: no table needs to keep it.
    private func isDate(_ bytes: UnsafeBufferPointer<UInt8>, _ name: Range<Int>) -> Bool {
        guard name.count == 4 else { return false }
        var word: UInt32 = 0
        // Bit 5 makes letters lower-case.
        for place in name { word = word << 8 | UInt32(bytes[place] | 0x20) }
        return word == FieldBlock.dateName
    }

    /// "date" in ASCII.
    private static let dateName: UInt32 = 0x6461_7465

    private static let statusName: StaticString = ":status"
    private static let notKept = UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
}
