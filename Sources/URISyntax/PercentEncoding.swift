/// Percent-encoding (RFC 3986, 2.1), applied only where a byte could not travel otherwise.
package enum PercentEncoding {
    /// Appends `byte` as `%XX`.
    package static func append(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(0x25)
        output.append(ASCII.hexDigit(byte >> 4))
        output.append(ASCII.hexDigit(byte))
    }

    /// Encodes what cannot stand in a request line: blanks, controls and bytes above 0x7E.
    ///
    /// Everything else, existing escapes included, is copied as it is.
    package static func appendRequestForm(
        of bytes: some Sequence<UInt8>, to output: inout [UInt8]
    ) {
        for byte in bytes {
            if byte <= 0x20 || byte >= 0x7F {
                append(byte, to: &output)
            } else {
                output.append(byte)
            }
        }
    }

    /// Decodes every well-formed `%XX`; a `%` that starts no escape stays as it is.
    package static func decode(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte == 0x25, index + 2 < bytes.endIndex,
                let high = ASCII.hexValue(bytes[index + 1]),
                let low = ASCII.hexValue(bytes[index + 2])
            {
                output.append(high << 4 | low)
                index += 3
            } else {
                output.append(byte)
                index += 1
            }
        }
        return output
    }

    /// Bytes as text: valid UTF-8 as it is, every other byte as `%XX`, so that nothing is lost.
    package static func text(_ bytes: ArraySlice<UInt8>) -> String {
        if let valid = try? UTF8Span(validating: bytes.span) { return String(copying: valid) }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 16)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let length = utf8SequenceLength(bytes[index...])
            if length == 0 {
                append(bytes[index], to: &output)
                index += 1
            } else {
                output.append(contentsOf: bytes[index..<index + length])
                index += length
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Length of the well-formed UTF-8 sequence at the start of `bytes`, or 0.
    private static func utf8SequenceLength(_ bytes: ArraySlice<UInt8>) -> Int {
        guard let first = bytes.first else { return 0 }
        if first < 0x80 { return 1 }
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        guard bytes.count >= length else { return 0 }
        return String(validating: bytes.prefix(length), as: UTF8.self) == nil ? 0 : length
    }
}
