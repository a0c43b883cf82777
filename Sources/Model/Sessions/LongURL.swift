// Long URLs in links that need no table: those of a cluster, which every node must read, and those
// written while the index takes no names.
import CZlib
package import Routing
package import URISyntax

/// Compresses the queries of long URLs for handles (RFC 1951, on zlib).
///
/// Tokens are text, in which a byte holds six bits or less: compressed and in base64 they take
/// about the room that they take at the origin. Paths stay readable, since balancers hash them.
package enum LongURL {
    /// Longer URLs are not packed, in bytes; also the most that a handle expands to.
    static let longest = 32 << 10
    /// The longest target of a handle, in bytes: in base64 it leaves room for other fields in the
    /// 16 KiB that balancers have for a request head.
    static let longestTarget = 6 << 10

    /// Returns the target of a handle that holds the whole URL; nil if that would be too long.
    package static func target(_ url: AbsoluteURL) -> Handle.Target? {
        guard url.bytes.count <= longest else { return nil }
        if let query = url.queryRange, let packed = compress(url.bytes[query]),
            packed.count < query.count
        {
            let start = url.bytes[(url.scheme.name.utf8.count + 3)..<(query.lowerBound - 1)]
            guard start.count + packed.count <= longestTarget else { return nil }
            return .packed(PackedURL(scheme: url.scheme, start: Array(start), query: packed))
        }
        return url.bytes.count <= longestTarget ? .url(url) : nil
    }

    /// Returns the URL of a handle; nil unless it is a URL of at most `longest` bytes.
    package static func url(of packed: PackedURL) -> AbsoluteURL? {
        guard packed.start.count < longest,
            let query = expand(packed.query, atMost: longest - packed.start.count)
        else { return nil }
        let scheme = Array("\(packed.scheme.name)://".utf8)
        return try? AbsoluteURL(bytes: scheme + packed.start + [0x3F] + query)
    }

    /// Returns the compressed form; nil if zlib has no memory.
    private static func compress(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var stream = z_stream()
        guard sluice_deflate_init(&stream, Z_BEST_COMPRESSION) == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        let room = Int(deflateBound(&stream, uLong(bytes.count)))
        return run(Array(bytes), &stream, room: room) { deflate($0, Z_FINISH) }
    }

    /// Returns the text; nil if it is malformed or longer than `limit`.
    private static func expand(_ bytes: [UInt8], atMost limit: Int) -> [UInt8]? {
        var stream = z_stream()
        guard !bytes.isEmpty, sluice_inflate_init(&stream) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        return run(bytes, &stream, room: limit) { inflate($0, Z_FINISH) }
    }

    /// Returns the output if one call takes all of the input and ends the stream.
    private static func run(
        _ bytes: [UInt8], _ stream: inout z_stream, room: Int,
        _ step: (UnsafeMutablePointer<z_stream>) -> CInt
    ) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: room)
        let status = bytes.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { room in
                // zlib does not write through next_in; its type only lacks the const.
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.avail_in = UInt32(input.count)
                stream.next_out = room.baseAddress
                stream.avail_out = UInt32(room.count)
                return step(&stream)
            }
        }
        guard status == Z_STREAM_END, stream.avail_in == 0 else { return nil }
        output.removeLast(Int(stream.avail_out))
        return output
    }
}
