/// The framing bytes around the content of a chunked body that we send (RFC 9112 section 7.1).
package enum ChunkedEncoding {
    /// The most bytes that `appendHeader` and `appendTrailer` add to one chunk together.
    package static let maximumOverhead = 20

    /// Writes the line before a chunk's bytes.
    ///
    /// - Parameters:
    ///   - size: The number of bytes in the chunk, at least 1: a chunk of 0 would end the body.
    ///   - bytes: What the line is added to.
    package static func appendHeader(size: Int, to bytes: inout [UInt8]) {
        precondition(size > 0, "a chunk of \(size) bytes")
        let digits = (size.bitWidth - size.leadingZeroBitCount + 3) / 4
        for position in stride(from: digits - 1, through: 0, by: -1) {
            let digit = UInt8((size >> (position * 4)) & 15)
            bytes.append(digit < 10 ? 0x30 + digit : 0x61 + digit - 10)
        }
        appendLineEnd(to: &bytes)
    }

    /// Writes what follows a chunk's bytes.
    package static func appendTrailer(to bytes: inout [UInt8]) {
        appendLineEnd(to: &bytes)
    }

    /// Writes the last chunk and an empty trailer section: the only thing that says the body is
    /// whole, so never after an error.
    package static func appendLastChunk(to bytes: inout [UInt8]) {
        bytes.append(0x30)
        appendLineEnd(to: &bytes)
        appendLineEnd(to: &bytes)
    }
}
