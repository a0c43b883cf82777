import URISyntax

/// Effects of each known tag on the pass.
extension PlaylistPass {
    mutating func handle(
        _ tag: Tag, _ line: TagLine, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        switch tag.name {
        case .inf:
            // Other EXTINF lines are handled before the tag table.
            pending.hasInf = true
            pending.duration = nil
            copy(line.range)
        case .byteRange:
            noteStart(line.range.lowerBound)
            pending.byteRange = WrittenSubRange(body[line.value])
            if writesOffsets, let range = pending.byteRange, range.offset == nil {
                writeByteRange(range.length)
            } else {
                copy(line.range)
            }
        case .gap:
            noteStart(line.range.lowerBound)
            pending.isGap = true
            copy(line.range)
        case .discontinuity:
            noteStart(line.range.lowerBound)
            discontinuitySequence += 1
            if Sink.takesValues { sink.takeDiscontinuity() }
            copy(line.range)
        case .streamInf:
            let facts = TagFacts(line, attributes(of: line))
            variant = PendingVariant(
                bandwidth: facts.bandwidth,
                written: writtenCount..<writtenCount + line.range.count + 1,
                followsInf: pending.hasInf)
            if Sink.takesValues { sink.takeTag(line, facts, [], at: position) }
            copy(line.range)
        case .define:
            takeTag(line)
            try define(line)
        case .start, .serverControl, .partInf, .skip, .tiles:
            takeTag(line)
            noteListTag(tag.name, line)
            copy(line.range)
        case _ where !tag.uris.isEmpty: try writeAttributes(tag, line, map)
        case .prefetch, .twitchPrefetch:
            try writePrefetch(tag, line, map)
        default:
            noteListTag(tag.name, line)
            copy(line.range)
        }
    }

    func attributes(of line: TagLine) -> AttributeList { AttributeList(body, in: line.value) }

    /// Passes a tag with attributes but without URIs to the sink.
    private mutating func takeTag(_ line: TagLine) {
        guard Sink.takesValues else { return }
        sink.takeTag(line, TagFacts(line, attributes(of: line)), [], at: position)
    }

    /// Defines a variable and writes its line.
    private mutating func define(_ line: TagLine) throws(PlaylistError) {
        guard let form = try resolver.define(attributes(of: line), at: line.number, options) else {
            return
        }
        switch form {
        case .asWritten: copy(line.range)
        case .replaced(let name, let value): writeDefinition(name, value)
        }
    }

    private mutating func writeDefinition(_ name: String, _ value: String) {
        sink.write { output in
            output.append(contentsOf: "#EXT-X-DEFINE:NAME=\"\(name)\",VALUE=\"".utf8)
            for byte in value.utf8 {
                if byte == 0x22 || ASCII.isControl(byte) {
                    PercentCoding.append(byte, to: &output)
                } else {
                    output.append(byte)
                }
            }
            output.append(contentsOf: "\"\n".utf8)
        }
    }

    // MARK: Tags without URIs

    /// Records the duration of the next segment from an EXTINF line.
    mutating func noteInf(_ line: LineReader.Line, _ span: Span<UInt8>) {
        noteStart(line.range.lowerBound)
        pending.hasInf = true
        let value = line.range.lowerBound + 8..<line.range.upperBound
        if let lastInf, lastInf.text.stands(at: value.lowerBound, in: span) {
            pending.duration = lastInf.duration
            return
        }
        var start = value.lowerBound
        while start < value.upperBound, ASCII.isBlank(span[start]) { start += 1 }
        // Channel lists write attributes after a blank: `#EXTINF:-1 tvg-id="x",Name`.
        var end = start
        while end < value.upperBound, span[end] != 0x2C, !ASCII.isBlank(span[end]) { end += 1 }
        pending.duration = DecimalNumber.seconds(span.extracting(start..<end))
        if let duration = pending.duration, end < value.upperBound, span[end] == 0x2C,
            let text = ShortText(value.lowerBound..<end + 1, of: span)
        {
            let isAll = end + 1 == value.upperBound && end + 1 < span.count && span[end + 1] == 0x0A
            let whole = isAll ? ShortText(line.range.lowerBound..<end + 2, of: span) : nil
            lastInf = LastInf(text: text, line: whole, duration: duration)
        }
    }

    /// Writes EXT-X-BYTERANGE without its offset, which is known only at the URI line.
    private mutating func writeByteRange(_ length: Int) {
        sink.write { $0.append(contentsOf: "#EXT-X-BYTERANGE:\(length)".utf8) }
        offsetPlace = writtenCount
        sink.write { $0.append(0x0A) }
    }

    private mutating func noteListTag(_ name: Tag.Name, _ line: TagLine) {
        switch name {
        case .version:
            summary.version = DecimalNumber.integer(body[line.value]) ?? summary.version
        case .targetDuration:
            summary.targetDuration = DecimalNumber.length(body[line.value])
        case .mediaSequence:
            guard let value = DecimalNumber.sequenceNumber(body[line.value]) else { return }
            summary.mediaSequence = value
            mediaSequence = value + summary.skippedSegmentCount + summary.segmentCount
        case .discontinuitySequence:
            guard let value = DecimalNumber.sequenceNumber(body[line.value]) else { return }
            summary.discontinuitySequence = value
            discontinuitySequence = value
        case .endList: summary.hasEndList = true
        case .playlistType:
            let text = PercentCoding.text(DecimalNumber.trimmed(body[line.value]))
            summary.playlistType = PlaylistSummary.PlaylistType(rawValue: text)
        case .iFramesOnly: summary.isIFramesOnly = true
        case .imagesOnly: isImagesOnly = true
        case .partInf: summary.partTarget = attributes(of: line).length(of: "PART-TARGET")
        case .serverControl:
            summary.canSkipUntil = attributes(of: line).length(of: "CAN-SKIP-UNTIL")
        case .skip: noteSkip(line)
        case .bitrate: noteStart(line.range.lowerBound)
        default: break
        }
    }

    private mutating func noteSkip(_ line: TagLine) {
        guard !summary.isSkipDelta else { return }
        summary.isSkipDelta = true
        let count = attributes(of: line).integer(of: "SKIPPED-SEGMENTS") ?? 0
        summary.skippedSegmentCount = count
        mediaSequence += count
    }

    // MARK: Tags whose value is a URI

    private mutating func writePrefetch(
        _ tag: Tag, _ line: TagLine, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let text = DecimalNumber.trimmed(body[line.value])
        let found: AbsoluteURL?
        do throws(PlaylistError) {
            found =
                try text.isEmpty
                ? nil : resolver.resolve(text, .segment, line: line.number, tag: tag)
        } catch {
            return try leaveOut(error, tag)
        }
        guard let url = found else { return copy(line.range) }
        let reference = makeReference(url, .segment, tag.name, line: line.number)
        if Sink.takesValues { sink.takeOther(reference) }
        guard Sink.writesText else { return }
        let before = body[line.range.lowerBound..<text.startIndex]
        sink.write { $0.append(contentsOf: before) }
        let isMapped = sink.appendMapped(reference, map)
        sink.write {
            if !isMapped { $0.append(contentsOf: text) }
            $0.append(0x0A)
        }
    }
}
