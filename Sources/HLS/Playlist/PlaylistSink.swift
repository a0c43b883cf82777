/// What takes in what the pass over a playlist reads.
///
/// The text goes on as edits, in the order of the list; what the text says as values. A sink needs
/// one of the two, and the pass leaves out the other where it is compiled for that sink.
protocol PlaylistSink {
    /// Whether the text goes on.
    static var writesText: Bool { get }
    /// Whether values are made.
    static var takesValues: Bool { get }

    // MARK: Text

    /// Writes a line of the body, or the end of one, as it is and ends it with LF.
    mutating func copy(_ range: Range<Int>)
    /// Lets `append` write behind what is written so far.
    mutating func write(_ append: (inout [UInt8]) -> Void)
    /// Appends what the map gives for `reference`; returns false, with nothing appended, for none.
    mutating func appendMapped(
        _ reference: ResourceReference, _ map: PlaylistRewriter.ReferenceMap
    ) -> Bool
    /// How many bytes are written.
    var writtenCount: Int { get }
    /// Takes out what was written in a range.
    mutating func remove(_ range: Range<Int>)
    /// Takes back all that was written behind the first `count` bytes.
    mutating func takeBack(to count: Int)

    // MARK: Values

    mutating func takeLine(_ line: PlaylistLine)
    /// Takes a date (EXT-X-PROGRAM-DATE-TIME), nil for a malformed one, and the media sequence number
    /// of the segment behind it.
    mutating func takeDate(_ date: DateTime?, before mediaSequence: Int)
    mutating func takeDiscontinuity()
    mutating func takeBitrate(_ value: Int?)
    mutating func takeSegment(_ segment: MediaPlaylist.Segment)
    /// Takes a tag with attributes and what its URIs name.
    mutating func takeTag(
        _ line: TagLine, _ facts: TagFacts, _ references: [ResourceReference],
        at position: PlaylistPosition)
    /// Takes a resource that no value of the model holds: prefetched segments, and tags that do not
    /// belong into this kind of playlist.
    mutating func takeOther(_ reference: ResourceReference)
    /// Takes the URI behind EXT-X-STREAM-INF, or one that no such tag announces.
    mutating func takeVariantURI(_ range: Range<Int>, line: Int, _ reference: ResourceReference?)
}

/// The numbers and the context that hold where a tag stands.
struct PlaylistPosition {
    let kind: PlaylistKind
    let mediaSequence: Int
    let discontinuitySequence: Int
    let partIndex: Int
    let context: SegmentContext
}
