/// The consumer of the results of the pass over a playlist.
///
/// The text arrives as edits in the order of the list, its meaning as values. A sink needs one of
/// the two; the pass specialized for it omits the other.
protocol PlaylistSink {
    /// True if the sink writes text.
    static var writesText: Bool { get }
    /// True if the sink takes values.
    static var takesValues: Bool { get }

    // MARK: Text

    /// Writes a line of the body, or the end of one, unchanged and ends it with LF.
    mutating func copy(_ range: Range<Int>)
    /// Lets `append` write at the end of the output.
    mutating func write(_ append: (inout [UInt8]) -> Void)
    /// Appends the replacement that `map` writes for `reference`; returns false, with nothing
    /// appended, if it keeps the URI.
    mutating func appendMapped(
        _ reference: ResourceReference, _ map: PlaylistRewriter.ReferenceMap
    ) -> Bool
    /// The number of bytes written.
    var writtenCount: Int { get }
    /// Removes a range of the output.
    mutating func remove(_ range: Range<Int>)
    /// Truncates the output to its first `count` bytes.
    mutating func takeBack(to count: Int)

    // MARK: Values

    mutating func takeLine(_ line: PlaylistLine)
    /// Takes a date (EXT-X-PROGRAM-DATE-TIME), nil if malformed, and the media sequence number of
    /// the next segment.
    mutating func takeDate(_ date: DateTime?, before mediaSequence: Int)
    mutating func takeDiscontinuity()
    mutating func takeSegment(_ segment: MediaPlaylist.Segment)
    /// Takes a tag with attributes and the resources that its URIs name.
    mutating func takeTag(
        _ line: TagLine, _ facts: TagFacts, _ references: [ResourceReference],
        at position: PlaylistPosition)
    /// Takes a resource that has no place in the model: prefetched segments, and URIs that do not
    /// belong in this kind of playlist.
    mutating func takeOther(_ reference: ResourceReference)
    /// Takes the URI after EXT-X-STREAM-INF, or one without such a tag.
    mutating func takeVariantURI(line: Int, _ reference: ResourceReference?)
}

/// The numbers and the context that apply at a tag.
struct PlaylistPosition {
    let mediaSequence: Int
    let discontinuitySequence: Int
    let partIndex: Int
    let context: SegmentContext
}
