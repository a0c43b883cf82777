import URISyntax

/// Parsing and rewriting of tag lines with URI attributes.
extension PlaylistPass {
    /// Writes a line with every URI attribute replaced and all other bytes unchanged.
    mutating func writeAttributes(
        _ tag: Tag, _ line: TagLine, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let list = attributes(of: line)
        let facts = TagFacts(line, list)
        var references: [ResourceReference] = []
        let start = writtenCount
        // The same as `body`; a local constant is passed without counting a reference.
        let text = list.bytes
        var edit = LineEdit(of: line.range)
        /// One bit for each of the tag's URIs.
        var seen: UInt64 = 0
        var hasURI = false
        /// Whether the tag is left out together with a URI; nil until all attributes were looked at.
        var losesWhole: Bool?
        /// Whether a rendition is subtitles; nil until all attributes were looked at.
        var isSubtitles: Bool?
        for attribute in list {
            guard let (index, role) = role(of: attribute, tag, facts) else { continue }
            edit.writeOffset(before: attribute.name.lowerBound, text, to: &sink)
            hasURI = true
            guard !attribute.value.isEmpty else { continue }
            // RFC 8216bis section 4.2 forbids a second one; which a player would take is open.
            let isFirst = seen >> UInt64(index) & 1 == 0
            seen |= 1 << UInt64(index)
            let value = body[attribute.value]
            var url: AbsoluteURL?
            var isUnusable = false
            do throws(PlaylistError) {
                if let document = try document(in: value, role, line: line.number, tag: tag) {
                    edit.replace(attribute, by: document, text, to: &sink)
                    continue
                }
                url = try resolver.resolve(value, role, line: line.number, tag: tag)
            } catch {
                isUnusable = true
                guard tag.loss == .part, error.isMalformedURI else {
                    try leaveOut(error, tag)
                    let isLost = losesWhole ?? losesTag(tag, list)
                    losesWhole = isLost
                    guard isLost else {
                        edit.remove(attribute, text, to: &sink)
                        continue
                    }
                    if Sink.takesValues { sink.takeTag(line, facts, references, at: position) }
                    return sink.takeBack(to: start)
                }
                unusable.add(error)
                url = try resolver.placeholder(of: value)
            }
            var kind = role
            // Only behind the resolving, which rejects playlists that stand in their URI.
            if role == .playlist, tag.name == .dateRange, let url { kind = .ofAsset(url) }
            if tag.name == .key { noteKey(url, facts) }
            if tag.name == .map {
                let range = facts.byteRange.map {
                    SubRange(offset: $0.offset ?? 0, length: $0.length)
                }
                context = context.with(mapURL: url, byteRange: range)
            }
            guard let url else { continue }
            if kind == .playlist, !isUnusable { noteChild(url) }
            if tag.name == .media, !isUnusable {
                let isNoted = isSubtitles ?? list.isValue("SUBTITLES", of: "TYPE")
                isSubtitles = isNoted
                if isNoted { noteSubtitles(url) }
            }
            var reference = makeReference(url, kind, tag.name, line: line.number)
            add(facts, to: &reference, url, isFirst: isFirst)
            let becomesGap = isUnusable && !reference.isGap
            if isUnusable { reference.isGap = true }
            if Sink.takesValues { references.append(reference) }
            guard Sink.writesText else { continue }
            if isFirst { edit.missing = missingOffset(of: reference, facts) }
            edit.writeOffset(before: attribute.name.lowerBound, text, to: &sink)
            edit.replace(attribute, by: reference, map, text, to: &sink)
            if becomesGap { edit.addGap(after: attribute, text, to: &sink) }
        }
        edit.writeOffset(before: line.range.upperBound, text, to: &sink)
        copy(edit.rest)
        if !hasURI, tag.name == .key, facts.isValue("NONE", of: facts.method) {
            context = context.with(keyURL: nil)
        }
        if Sink.takesValues { sink.takeTag(line, facts, references, at: position) }
        if tag.name == .part { partIndex += 1 }
    }

    /// True if a tag is left out together with its URI.
    private func losesTag(_ tag: Tag, _ list: AttributeList) -> Bool {
        switch tag.loss {
        case .tag, .part, .playlist: true
        case .attribute: false
        case .attributeOrTag(let other): !list.has(other)
        }
    }

    /// Returns the offset missing in a part's BYTERANGE and its place in the text; nil if none has
    /// to be written, or if the range may continue a skipped part.
    private func missingOffset(
        of reference: ResourceReference, _ facts: TagFacts
    ) -> LineEdit.MissingOffset? {
        guard writesOffsets, reference.tag == .part, let range = reference.byteRange,
            !partRanges.isUncertain || !summary.isSkipDelta,
            let text = facts.byteRangeText, !body[text].contains(0x40)
        else { return nil }
        return LineEdit.MissingOffset(
            offset: range.offset, place: DecimalNumber.trimmed(body[text]).endIndex)
    }

    /// Returns the index of an attribute among the tag's that hold URIs, and its URI's role; nil if
    /// the attribute is not a URI.
    private func role(
        of attribute: AttributeList.Attribute, _ tag: Tag, _ facts: TagFacts
    ) -> (index: Int, role: ResourceRole)? {
        let name = body[attribute.name]
        guard let index = tag.uris.firstIndex(where: { name.elementsEqual($0.name.utf8) }),
            let role = role(of: attribute, tag.uris[index], tag, facts)
        else { return nil }
        return (index, role)
    }

    private func role(
        of attribute: AttributeList.Attribute, _ uri: Tag.URIAttribute, _ tag: Tag,
        _ facts: TagFacts
    ) -> ResourceRole? {
        switch tag.name {
        case .preloadHint:
            if facts.isValue("MAP", of: facts.type) { return .initialization }
            return facts.isValue("KEY", of: facts.type) ? .key : .part
        case .sessionData:
            return facts.isValue("RAW", of: facts.format) ? .media : .json
        case .dateRange where uri.name == "X-URI":
            return resourceRole(ofDateRange: facts, body[attribute.value])
        default:
            return uri.role
        }
    }

    /// Returns the role of X-URI; nil for classes that do not define it and may use it for
    /// anything.
    ///
    /// A schedule is JSON. A preload names what a later date range will name: a schedule or an
    /// asset list (JSON), or a playlist, which only its extension reveals.
    private func resourceRole(
        ofDateRange facts: TagFacts, _ uri: ArraySlice<UInt8>
    ) -> ResourceRole? {
        if facts.isValue("com.apple.hls.daterange-schedule", of: facts.dateRangeClass) {
            return .json
        }
        guard facts.isValue("com.apple.hls.preload", of: facts.dateRangeClass) else { return nil }
        let path = uri.prefix { $0 != 0x3F && $0 != 0x23 }
        return path.suffix(5).elementsEqual(".m3u8".utf8) ? .playlist : .json
    }

    /// Adds what a tag says of a resource besides its URI; only the first URI of a part has its
    /// range.
    private mutating func add(
        _ facts: TagFacts, to reference: inout ResourceReference, _ url: AbsoluteURL, isFirst: Bool
    ) {
        switch reference.tag {
        case .part:
            reference.partIndex = partIndex
            reference.duration = facts.duration
            reference.isGap = facts.isGap
            if isFirst { reference.byteRange = partRange(facts, url) }
        case .map:
            reference.byteRange = context.mapByteRange
        case .preloadHint:
            if reference.role == .part { reference.partIndex = partIndex }
            // An omitted start is 0 (8216bis section 4.4.5.3): after parts that are ranges, the hint
            // for the first range of the next segment may lack it.
            reference.hasRangeStart =
                facts.hasRangeStart || reference.role == .part && !partRanges.isReset
            if let length = facts.rangeLength {
                reference.byteRange = SubRange(offset: facts.rangeStart ?? 0, length: length)
            }
        case .iFrameStreamInf, .imageStreamInf:
            reference.bandwidth = facts.bandwidth
        default:
            break
        }
    }

    /// Returns the sub-range of a part; an omitted offset continues the previous part.
    private mutating func partRange(_ facts: TagFacts, _ url: AbsoluteURL) -> SubRange? {
        guard facts.byteRangeText != nil else {
            partRanges.reset()
            return nil
        }
        guard let written = facts.byteRange else { return nil }
        return partRanges.resolve(written, for: url)
    }

    /// Records the URL of a key, which replaces the one before; a key with an opaque URI leaves
    /// that in force, and so does the key of a key system beside one that anybody can fetch.
    private mutating func noteKey(_ url: AbsoluteURL?, _ facts: TagFacts) {
        if facts.isValue("NONE", of: facts.method) {
            context = context.with(keyURL: nil)
        } else if let url {
            let format = "KEYFORMAT"
            let isOfSystem =
                facts.list.has(format) && !facts.list.isValue("identity", of: format)
            guard !isOfSystem || context.keyURL == nil || context.isKeyOfSystem else { return }
            context = context.with(keyURL: url, isOfSystem: isOfSystem)
        }
    }

    /// Records the playlist of a rendition that is subtitles.
    private mutating func noteSubtitles(_ url: AbsoluteURL) {
        if subtitleLists.count < RewrittenPlaylist.mostSubtitleLists { subtitleLists.append(url) }
    }
}
