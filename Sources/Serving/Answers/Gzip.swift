import CZlib

/// Gzip compression of playlists and JSON for players (RFC 1952), on zlib.
enum Gzip {
    /// Shorter bodies are sent uncompressed: they fit one packet either way.
    static let worthwhile = 1_400

    /// Returns the gzip form of `bytes`; nil if zlib has no memory.
    static func compress(_ bytes: [UInt8]) -> [UInt8]? {
        var stream = z_stream()
        // The fastest level: playlists are so repetitive that slower levels gain little.
        guard sluice_gzip_init(&stream, Z_BEST_SPEED) == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, uLong(bytes.count))))
        let status = bytes.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { room in
                // zlib does not write through next_in; its type only lacks the const.
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.avail_in = UInt32(input.count)
                stream.next_out = room.baseAddress
                stream.avail_out = UInt32(room.count)
                return deflate(&stream, Z_FINISH)
            }
        }
        guard status == Z_STREAM_END else { return nil }
        output.removeLast(Int(stream.avail_out))
        return output
    }
}
