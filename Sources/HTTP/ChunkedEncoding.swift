/// The framing of chunked bodies that Sluice sends (RFC 9112 section 7.1).
package enum ChunkedEncoding {
    /// The most bytes that `appendHeader` and `appendTrailer` add to one chunk together.
    package static let maximumOverhead = 20

    /// Appends the line before a chunk's bytes.
    ///
    /// - Parameters:
    ///   - size: The number of bytes in the chunk, at least 1: a chunk of 0 would end the body.
    ///   - bytes: The output.
    package static func appendHeader(size: Int, to bytes: inout [UInt8]) {
        precondition(size > 0, "a chunk of \(size) bytes")
        let digits = (size.bitWidth - size.leadingZeroBitCount + 3) / 4
        for position in stride(from: digits - 1, through: 0, by: -1) {
            let digit = UInt8((size >> (position * 4)) & 15)
            bytes.append(digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
        }
        appendLineEnd(to: &bytes)
    }

    /// Appends the line end after a chunk's bytes.
    package static func appendTrailer(to bytes: inout [UInt8]) {
        appendLineEnd(to: &bytes)
    }

    /// Appends the last chunk and an empty trailer section: these alone mark the body as complete,
    /// so they must never follow an error.
    package static func appendLastChunk(to bytes: inout [UInt8]) {
        bytes.append(0x30)
        appendLineEnd(to: &bytes)
        appendLineEnd(to: &bytes)
    }
}
