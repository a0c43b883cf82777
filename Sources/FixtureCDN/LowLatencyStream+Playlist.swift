/// The playlists of a low-latency stream, and when a request for one is answered.
extension LowLatencyStream {
    /// The stream's response to a request.
    enum Answer {
        /// There is no such resource.
        case missing
        case refused(Int)
        /// Blocked until more is produced.
        case wait
        case playlist(String)
        /// Bytes that are completely available.
        case whole(Content, Range<Int>)
        /// Bytes of a segment, sent as they are produced.
        case growing(segment: Int, Range<Int>)
    }

    /// The answer to a request for `name`, the part of the path after the prefix and a slash.
    func answer(_ name: String, _ query: QueryArguments) -> Answer {
        if name == "master.m3u8" { return .playlist(multivariant) }
        for rendition in settings.renditions {
            if name == rendition + ".m3u8" { return list(rendition, query) }
            if name.hasPrefix(rendition + "/s"), name.hasSuffix(".ts") {
                return media(String(name.dropFirst(rendition.count + 2).dropLast(3)))
            }
        }
        return .missing
    }

    private func media(_ name: String) -> Answer {
        let parts = name.split(separator: ".")
        guard let number = parts.first.flatMap({ Int($0) }),
            (0...position.segment).contains(number)
        else { return .missing }
        if parts.count == 1 {
            guard let segment = segment(number) else { return .missing }
            let end = segment.content.length
            return segment.isWhole
                ? .whole(segment.content, 0..<end) : .growing(segment: number, 0..<end)
        }
        guard !settings.partsAreRanges, parts.count == 2, parts[1].hasPrefix("p"),
            let part = Int(parts[1].dropFirst()), (0..<settings.partsPerSegment).contains(part)
        else { return .missing }
        let range = range(ofPart: part, in: number)
        if let segment = segment(number), segment.available >= range.upperBound {
            return .whole(segment.content, range)
        }
        // A request is held only for the part named by the preload hint.
        return (number, part) == position && !isEnded
            ? .growing(segment: number, range) : .missing
    }

    // MARK: Lists

    private func list(_ rendition: String, _ query: QueryArguments) -> Answer {
        let (segment, part) = position
        if settings.blocks, !isEnded, let wanted = query["_HLS_msn"].flatMap({ Int($0) }) {
            if wanted > segment + 2 { return .refused(400) }
            let wantedPart = query["_HLS_part"].flatMap { Int($0) }
            var due = (wanted + 1) * settings.partsPerSegment
            if let wantedPart {
                // A part index beyond the last means the first part of the next segment.
                due =
                    wanted * settings.partsPerSegment
                    + min(wantedPart, settings.partsPerSegment) + 1
            }
            if segment * settings.partsPerSegment + part < due { return .wait }
        }
        return .playlist(text(rendition, isDelta: query["_HLS_skip"] != nil && settings.skips))
    }

    private var multivariant: String {
        let variants = settings.renditions.enumerated().flatMap { index, name in
            ["#EXT-X-STREAM-INF:BANDWIDTH=\((index + 1) * 400_000)", "\(name).m3u8"]
        }
        return (["#EXTM3U", "#EXT-X-VERSION:9"] + variants).joined(separator: "\n") + "\n"
    }

    private func text(_ rendition: String, isDelta: Bool) -> String {
        let (current, part) = position
        let first = firstNumber
        let skipped = isDelta ? max(0, current - first - skipUntil) : 0
        var lines = head
        lines.append("#EXT-X-MEDIA-SEQUENCE:\(first)")
        lines.append("#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuities(before: first))")
        if skipped > 0 { lines.append("#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)") }
        for number in (first + skipped)..<max(current, first + skipped) {
            if isDiscontinuous(number) { lines.append("#EXT-X-DISCONTINUITY") }
            if settings.dated { lines.append(date(number)) }
            if number >= current - 3 {
                lines += (0..<settings.partsPerSegment).map { partLine(rendition, number, $0) }
            }
            let length = settings.partDuration * Double(settings.partsPerSegment)
            lines += ["#EXTINF:\(length),", "\(rendition)/s\(number).ts"]
        }
        // The hint follows the tag before the first part does: hls.js ends playback if the
        // discontinuity sequence number of a segment changes once it has a part.
        if isDiscontinuous(current), part > 0 || !isEnded { lines.append("#EXT-X-DISCONTINUITY") }
        lines += (0..<part).map { partLine(rendition, current, $0) }
        if isEnded {
            lines.append("#EXT-X-ENDLIST")
        } else {
            lines.append(hint(rendition, current, part))
            lines += reports(except: rendition)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Segments that a delta update still contains.
    private var skipUntil: Int {
        let length = settings.partDuration * Double(settings.partsPerSegment)
        return Int((6 * Double(targetDuration) / length).rounded(.up))
    }

    private var head: [String] {
        var control = "PART-HOLD-BACK=\(settings.partDuration * 3)"
        if settings.blocks { control = "CAN-BLOCK-RELOAD=YES," + control }
        if settings.skips { control += ",CAN-SKIP-UNTIL=\(targetDuration * 6)" }
        return [
            "#EXTM3U", "#EXT-X-VERSION:9", "#EXT-X-TARGETDURATION:\(targetDuration)",
            "#EXT-X-SERVER-CONTROL:\(control)",
            "#EXT-X-PART-INF:PART-TARGET=\(settings.partDuration)",
        ]
    }

    private func date(_ number: Int) -> String {
        let length = settings.partDuration * Double(settings.partsPerSegment)
        let milliseconds = Int(Double(number) * length * 1000)
        let seconds = milliseconds / 1000
        let digits: (Int, Int) -> String = { value, width in
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        return "#EXT-X-PROGRAM-DATE-TIME:2026-01-\(digits(1 + seconds / 86_400, 2))"
            + "T\(digits(seconds / 3600 % 24, 2)):\(digits(seconds / 60 % 60, 2))"
            + ":\(digits(seconds % 60, 2)).\(digits(milliseconds % 1000, 3))Z"
    }

    private func partLine(_ rendition: String, _ number: Int, _ part: Int) -> String {
        var line = "#EXT-X-PART:DURATION=\(settings.partDuration),"
        if settings.partsAreRanges {
            let range = range(ofPart: part, in: number)
            line += "URI=\"\(rendition)/s\(number).ts\","
            line += "BYTERANGE=\"\(range.count)@\(range.lowerBound)\""
        } else {
            line += "URI=\"\(rendition)/s\(number).p\(part).ts\""
        }
        return line + (part == 0 ? ",INDEPENDENT=YES" : "")
    }

    private func hint(_ rendition: String, _ number: Int, _ part: Int) -> String {
        guard settings.partsAreRanges else {
            return "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(rendition)/s\(number).p\(part).ts\""
        }
        let start = range(ofPart: part, in: number).lowerBound
        return "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(rendition)/s\(number).ts\","
            + "BYTERANGE-START=\(start)"
    }

    private func reports(except rendition: String) -> [String] {
        let (current, part) = position
        let last = part > 0 ? (current, part - 1) : (current - 1, settings.partsPerSegment - 1)
        return settings.renditions.filter { $0 != rendition }.map {
            "#EXT-X-RENDITION-REPORT:URI=\"\($0).m3u8\",LAST-MSN=\(last.0),LAST-PART=\(last.1)"
        }
    }
}
