import URISyntax

/// The sink that copies a playlist with its URIs replaced.
struct PlaylistWriter: PlaylistSink {
    static let writesText = true
    static let takesValues = false

    private let body: [UInt8]
    /// True if replacements need not be scanned.
    private let trustsMap: Bool
    /// The output without `uncopied`; append to it through `write`.
    private var output: [UInt8] = []
    /// The range of the body, whole lines with LF, that is to be copied next.
    ///
    /// Most of a playlist is unchanged, and few long copies cost less than many short ones.
    private var uncopied = 0..<0

    init(_ body: [UInt8], _ options: PlaylistRewriter.Options) {
        self.body = body
        trustsMap = options.trustsMap
        // Relative names become whole URLs. Reserved memory pages that stay untouched cost nothing.
        output.reserveCapacity(min(body.count * 6 + 1024, options.reading.limits.outputByteCount))
    }

    /// Returns the whole text.
    consuming func finish() -> [UInt8] {
        flush()
        return output
    }

    var writtenCount: Int { output.count + uncopied.count }

    mutating func copy(_ range: Range<Int>) {
        let end = range.upperBound
        if end < body.count, body[end] == 0x0A {
            if uncopied.upperBound != range.lowerBound {
                flush()
                uncopied = range.lowerBound..<end + 1
            } else {
                uncopied = uncopied.lowerBound..<end + 1
            }
        } else {
            flush()
            output.append(contentsOf: body[range])
            output.append(0x0A)
        }
    }

    /// Writes the pending range, so that other text can follow it.
    private mutating func flush() {
        guard !uncopied.isEmpty else { return }
        output.append(contentsOf: body[uncopied])
        uncopied = 0..<0
    }

    @inline(__always)
    mutating func write(_ append: (inout [UInt8]) -> Void) {
        flush()
        append(&output)
    }

    mutating func remove(_ range: Range<Int>) {
        flush()
        output.removeSubrange(range)
    }

    mutating func takeBack(to count: Int) {
        flush()
        output.removeSubrange(count...)
    }

    // Not through `write`, whose closure would copy the reference.
    @inline(__always)
    mutating func appendMapped(
        _ reference: ResourceReference, _ map: PlaylistRewriter.ReferenceMap
    ) -> Bool {
        flush()
        let start = output.count
        guard map(reference, &output) else {
            output.removeSubrange(start...)
            return false
        }
        if !trustsMap, Self.breaksOut(output, from: start) { Self.escape(&output, from: start) }
        return true
    }

    private static func escape(_ output: inout [UInt8], from start: Int) {
        let replacement = Array(output[start...])
        output.removeSubrange(start...)
        for byte in replacement {
            if byte == 0x22 || ASCII.isControl(byte) {
                PercentCoding.append(byte, to: &output)
            } else {
                output.append(byte)
            }
        }
    }

    /// True if a replacement would end the quoted string or the line that contains it.
    private static func breaksOut(_ output: [UInt8], from start: Int) -> Bool {
        let span = output.span.extracting(start...)
        // Without branches and early exit, so that the compiler can vectorize it.
        var found: UInt8 = 0
        for index in span.indices {
            let byte = span[index]
            found |= (byte < 0x20 ? 1 : 0) | (byte == 0x22 ? 1 : 0) | (byte == 0x7F ? 1 : 0)
        }
        return found != 0
    }
}

// A writer takes no values.
extension PlaylistWriter {
    func takeLine(_ line: PlaylistLine) {}
    func takeDate(_ date: DateTime?, before mediaSequence: Int) {}
    func takeDiscontinuity() {}
    func takeSegment(_ segment: MediaPlaylist.Segment) {}
    func takeTag(
        _ line: TagLine, _ facts: TagFacts, _ references: [ResourceReference],
        at position: PlaylistPosition
    ) {}
    func takeOther(_ reference: ResourceReference) {}
    func takeVariantURI(line: Int, _ reference: ResourceReference?) {}
}
