// Repeated request heads: identical bytes are parsed only once.
//
// A player reloads its live playlist with the same bytes every few seconds, and a thousand viewers
// of one stream with one player send the same bytes; so do monitors and load generators. The
// meaning of these bytes does not change, so comparing them can replace parsing them.
import Glibc
package import HTTP

/// A head that was received before.
package final class RepeatedHead {
    package let head: RequestHead
    /// A value that the handler stored when it answered the head; the handler must check whether it
    /// is still valid.
    package var finding: AnyObject? {
        get { kept }
        set { kept = newValue }
    }
    // As in `EventLoop`: other modules would check accesses to `finding` itself.
    @exclusivity(unchecked) private var kept: AnyObject?
    /// False if the handler must see each request with this head; set by the handler.
    @exclusivity(unchecked) package var mayHaveFinding = true

    let askedFraming: ResponsePlan.AskedFraming
    fileprivate let bytes: [UInt8]

    fileprivate init(_ head: RequestHead, bytes: Span<UInt8>) {
        self.head = head
        askedFraming = ResponsePlan.AskedFraming(head)
        self.bytes = [UInt8](capacity: bytes.count) { copy in
            for index in bytes.indices { copy.append(bytes[index]) }
        }
    }
}

/// The repeated heads of one loop, in a table that prefers recent and frequently used ones.
///
/// A hash selects a row of four places. The first time, only the hash is stored there, so that
/// heads which are never repeated cost no memory and displace no repeated one.
struct RepeatedHeads {
    private struct Place {
        var hash: UInt64 = 0
        var known: RepeatedHead?
        /// True if it was found since a place in its row was last searched for.
        var isInUse = false
    }

    private static let rows = 128
    private static let rowLength = 4
    /// Longer heads are always parsed, to bound the memory.
    private static let longest = 2_048

    private var places = [Place](repeating: Place(), count: rows * rowLength)

    /// The transport, which the meaning of a head depends on besides its bytes.
    enum Transport: UInt64 {
        case http1 = 0
        case http1OverTLS = 0x5555_5555_5555_5555
        case http2 = 0xAAAA_AAAA_AAAA_AAAA
        case http2OverTLS = 0xFFFF_FFFF_FFFF_FFFF
    }

    /// Returns the hash of bytes that may be a head; nil if they are not looked up.
    ///
    /// It differs between transports: responses contain the request's scheme, and an HTTP/2 head is
    /// not valid in HTTP/1.1. A client that causes collisions only causes its heads to be parsed, as
    /// they are without this table.
    static func hash(_ input: Span<UInt8>, over transport: Transport) -> UInt64? {
        guard input.count >= 16, input.count <= longest else { return nil }
        return input.withUnsafeBytes { bytes in
            var hash = UInt64(truncatingIfNeeded: bytes.count)
            var offset = 0
            let last = bytes.count - 8
            while true {
                let word = bytes.loadUnaligned(fromByteOffset: min(offset, last), as: UInt64.self)
                let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
                hash = product.high ^ product.low
                if offset >= last { return hash ^ transport.rawValue }
                offset += 8
            }
        }
    }

    /// Returns the head that these bytes were parsed as before.
    mutating func find(_ input: Span<UInt8>, hash: UInt64) -> RepeatedHead? {
        for index in Self.row(of: hash) where places[index].hash == hash {
            guard let known = places[index].known else { return nil }
            let bytes = known.bytes
            guard Self.isEqual(bytes.span, input) else { return nil }
            places[index].isInUse = true
            return known
        }
        return nil
    }

    /// Stores a parsed head if its hash was seen before; otherwise stores only the hash.
    mutating func note(_ head: RequestHead, _ input: Span<UInt8>, hash: UInt64) -> RepeatedHead? {
        let row = Self.row(of: hash)
        for index in row where places[index].hash == hash {
            let made = RepeatedHead(head, bytes: input)
            places[index] = Place(hash: hash, known: made, isInUse: true)
            return made
        }
        // Replaces first the oldest place with only a hash, which is the last one; then a place
        // that was not found since the last search.
        if let free = row.last(where: { places[$0].known == nil })
            ?? row.last(where: { !places[$0].isInUse })
        {
            for index in (row.lowerBound..<free).reversed() { places.swapAt(index, index + 1) }
            places[row.lowerBound] = Place(hash: hash)
        } else {
            for index in row { places[index].isInUse = false }
        }
        return nil
    }

    private static func row(of hash: UInt64) -> Range<Int> {
        let start = Int(truncatingIfNeeded: hash % UInt64(rows)) * rowLength
        return start..<(start + rowLength)
    }

    private static func isEqual(_ one: Span<UInt8>, _ other: Span<UInt8>) -> Bool {
        let count = one.count
        guard count == other.count else { return false }
        return one.withUnsafeBytes { one in
            other.withUnsafeBytes { other in
                guard let one = one.baseAddress, let other = other.baseAddress else { return true }
                return memcmp(one, other, count) == 0
            }
        }
    }
}
