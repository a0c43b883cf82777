import URISyntax

/// How a pass replaces the URIs that its resolver has made absolute: map, write.
extension PlaylistPass {
    /// Rewrites the JSON document that a URI contains; nil for any other URI, and for session data,
    /// whose URIs are the application's.
    ///
    /// The document is written as base64. One that cannot be read is refused like a scheme that
    /// bypasses the daemon, since a player would follow its URIs to the origin.
    mutating func document(
        in text: ArraySlice<UInt8>, _ role: ResourceRole, line: Int, tag: Tag
    ) throws(PlaylistError) -> [UInt8]? {
        guard Sink.writesText, let documents, role == .json, tag.name != .sessionData else {
            return nil
        }
        var uri = text
        if Variables.mayOccur(in: text), case .text(let expanded) = resolver.variables.expand(text)
        {
            uri = expanded[...]
        }
        guard DataURI.isDataURI(uri) else { return nil }
        let refusal = PlaylistError.forbiddenScheme(
            line: line, tag: tag.name.rawValue, scheme: "data")
        guard let content = DataURI.content(of: uri) else { throw refusal }
        let made: RewrittenJSON
        do throws(PlaylistError) {
            made = try documents(content)
        } catch {
            if case .notJSON = error { throw refusal }
            throw error
        }
        try resolver.count(made.resolvedByteCount, at: line)
        for reason in made.unusable.reasons { unusable.add(reason) }
        hasDocuments = true
        return DataURI.json(made.bytes)
    }

    /// Records a URI that is withheld from players; throws if the playlist is unusable without it.
    mutating func leaveOut(_ error: PlaylistError, _ tag: Tag) throws(PlaylistError) {
        guard tag.isOptional, error.isUnusableURI else { throw error }
        unusable.add(error)
    }

    /// Returns the reference of a URI at the current place of the list.
    @inline(__always)
    func makeReference(
        _ url: AbsoluteURL, _ role: ResourceRole, _ tag: Tag.Name, line: Int
    ) -> ResourceReference {
        ResourceReference(
            place: .whole(url), role: role, tag: tag, line: line, mediaSequence: mediaSequence,
            discontinuitySequence: discontinuitySequence, context: context)
    }

    /// The numbers and the context at the current line.
    var position: PlaylistPosition {
        PlaylistPosition(
            mediaSequence: mediaSequence, discontinuitySequence: discontinuitySequence,
            partIndex: partIndex, context: context)
    }

    // MARK: URI lines

    mutating func handleURILine(
        _ line: LineReader.Line, _ span: Span<UInt8>, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        var upper = line.range.upperBound
        while ASCII.isBlank(span[upper - 1]) { upper -= 1 }
        let range = line.range.lowerBound..<upper
        if variant != nil || summary.kind == .multivariant {
            if pending.hasInf { returnToMedia() }
            if let variant { return try writeVariantLine(range, line.number, variant, map) }
            if summary.kind == .multivariant {
                return try writePlaylistLine(range, line.number, nil, map)
            }
        }
        if summary.hasTagsOfHLS {
            try writeSegmentLine(range, line.number, map)
        } else {
            try writeEntryLine(range, line.number, map)
        }
    }

    /// Writes the URI of a variant; removes the variant if its URI is malformed.
    private mutating func writeVariantLine(
        _ range: Range<Int>, _ line: Int, _ variant: PendingVariant,
        _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        self.variant = nil
        do throws(PlaylistError) {
            try writePlaylistLine(range, line, variant.bandwidth, map)
        } catch {
            guard error.isMalformedURI else { throw error }
            unusable.addVariant(error)
            sink.remove(variant.written)
            if let place = offsetPlace, place >= variant.written.upperBound {
                offsetPlace = place - variant.written.count
            }
            if Sink.takesValues { sink.takeVariantURI(line: line, nil) }
        }
    }

    /// Writes an entry of a list without a tag of HLS; without the entry's lines if its URI is
    /// unusable.
    ///
    /// The lines between two URIs belong to the second one, whatever their order.
    private mutating func writeEntryLine(
        _ range: Range<Int>, _ line: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        do throws(PlaylistError) {
            try writeSegmentLine(range, line, map)
        } catch {
            guard error.isUnusableURI else { throw error }
            unusable.addEntry(error)
            sink.takeBack(to: entryStart)
            pending = PendingSegment()
        }
        entryStart = writtenCount
    }

    private mutating func writePlaylistLine(
        _ range: Range<Int>, _ line: Int, _ bandwidth: Int?,
        _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let found = try resolver.resolve(body[range], .playlist, line: line, tag: Tag.streamInf)
        summary.variantCount += 1
        guard let url = found else {
            if Sink.takesValues { sink.takeVariantURI(line: line, nil) }
            return copy(range)
        }
        noteChild(url)
        var reference = makeReference(url, .playlist, .streamInf, line: line)
        reference.bandwidth = bandwidth
        if Sink.takesValues { sink.takeVariantURI(line: line, reference) }
        write(reference, insteadOf: range, map)
    }

    /// Records a playlist that this one names.
    mutating func noteChild(_ url: AbsoluteURL) {
        if children.count < RewrittenPlaylist.mostChildren { children.append(url) }
    }

    private mutating func writeSegmentLine(
        _ range: Range<Int>, _ line: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        if Sink.takesValues {
            try takeSegment(range, line)
        } else if let place = try place(ofSegment: range, line) {
            let byteRange = resolveRange(of: place)
            if let offsetPlace, let byteRange {
                sink.write { $0.insert(contentsOf: "@\(byteRange.offset)".utf8, at: offsetPlace) }
            }
            let reference = ResourceReference(
                place: place, role: segmentRole(place, pending.duration), tag: .inf, line: line,
                mediaSequence: mediaSequence, discontinuitySequence: discontinuitySequence,
                duration: pending.duration, byteRange: byteRange, isGap: pending.isGap,
                context: context)
            write(reference, insteadOf: range, map)
        } else {
            copy(range)
        }
        summary.segmentCount += 1
        if pending.isGap { summary.gapCount += 1 }
        if let duration = pending.duration, duration > .zero { summary.totalDuration += duration }
        pending = PendingSegment()
        offsetPlace = nil
        mediaSequence += 1
        partIndex = 0
    }

    private mutating func takeSegment(_ range: Range<Int>, _ line: Int) throws(PlaylistError) {
        let place = try place(ofSegment: range, line)
        var byteRange: SubRange?
        var role = ResourceRole.segment
        // `Optional.map` would copy the pass into its closure.
        if let place {
            byteRange = resolveRange(of: place)
            role = segmentRole(place, pending.duration)
        }
        sink.takeSegment(
            MediaPlaylist.Segment(
                uri: range, line: line, place: place, role: role, byteRange: byteRange, pending,
                at: position))
    }

    /// Returns the location of a segment; nil if its URI passes to the player unchanged.
    @inline(__always)
    private mutating func place(
        ofSegment range: Range<Int>, _ line: Int
    ) throws(PlaylistError) -> ResourceReference.Place? {
        if let joined = folders.join(range) { return .joined(joined) }
        let found: AbsoluteURL?
        do throws(PlaylistError) {
            found = try resolver.resolve(body[range], .segment, line: line, tag: nil)
        } catch {
            return try gap(insteadOf: range, line, error)
        }
        guard let url = found else { return nil }
        folders.learn(range, as: url)
        return .whole(url)
    }

    /// Marks a segment with a malformed URI as a gap and returns a substitute location.
    private mutating func gap(
        insteadOf range: Range<Int>, _ line: Int, _ error: PlaylistError
    ) throws(PlaylistError) -> ResourceReference.Place? {
        guard error.isMalformedURI, summary.hasTagsOfHLS else { throw error }
        unusable.addSegment(error, line: line)
        if !pending.isGap { sink.write { $0.append(contentsOf: "#EXT-X-GAP\n".utf8) } }
        pending.isGap = true
        return try resolver.placeholder(of: body[range]).map { .whole($0) }
    }

    /// Returns the bytes of its resource that the pending segment consists of; nil for all of it.
    @inline(__always)
    private mutating func resolveRange(of place: ResourceReference.Place) -> SubRange? {
        // Nearly all segments are whole resources.
        if pending.byteRange == nil, segmentRanges.isReset { return nil }
        return resolve(pending.byteRange, of: place)
    }

    private mutating func resolve(
        _ written: WrittenSubRange?, of place: ResourceReference.Place
    ) -> SubRange? {
        guard let written else {
            segmentRanges.reset()
            return nil
        }
        if summary.isSkipDelta, summary.segmentCount == 0 { continueSkipped() }
        guard let range = segmentRanges.resolve(written, for: place.url) else { return nil }
        // It may continue a skipped segment.
        if segmentRanges.isUncertain, summary.isSkipDelta {
            offsetPlace = nil
            summary.guessesRanges = true
        }
        return range
    }

    /// Puts the cursor of a delta update behind the range of the last segment that it skips, if
    /// that is known.
    private mutating func continueSkipped() {
        let number = mediaSequence - 1
        guard let known = options.rangesBefore.last(where: { $0.number == number }) else { return }
        segmentRanges = SubRangeCursor(behind: known)
    }

    @inline(__always)
    private mutating func write(
        _ reference: ResourceReference, insteadOf range: Range<Int>,
        _ map: PlaylistRewriter.ReferenceMap
    ) {
        // If the URI was mapped, an empty range still writes the line end.
        copy(sink.appendMapped(reference, map) ? range.upperBound..<range.upperBound : range)
    }

    /// Returns the role of a URI line that is not a variant.
    ///
    /// In channel lists, which share the syntax, an entry without a positive duration is a stream or
    /// a playlist.
    private func segmentRole(
        _ place: ResourceReference.Place, _ duration: Duration?
    ) -> ResourceRole {
        if !summary.hasTagsOfHLS || duration.map({ $0 < .zero }) ?? !isKindKnown {
            if place.nameEnds(in: ".m3u8") || place.nameEnds(in: ".m3u") { return .playlist }
            if (duration ?? .zero) <= .zero { return .media }
        }
        if isImagesOnly { return .image }
        // Checks one byte first, which decides for most segments.
        if place.lastOfName | 0x20 == 0x74,
            place.nameEnds(in: ".vtt") || place.nameEnds(in: ".webvtt")
        {
            return .subtitle
        }
        // A live list's names must not depend on what was read before: its players know them.
        guard options.isSubtitles, summary.playlistType == .vod, !context.hasMap else {
            return .segment
        }
        return place.hasExtension(of: .segment) ? .segment : .subtitle
    }
}
