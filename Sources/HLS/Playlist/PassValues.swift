import URISyntax

/// The tags seen so far of the segment whose URI is still to come.
struct PendingSegment {
    var hasInf = false
    var duration: Duration?
    var byteRange: WrittenSubRange?
    var isGap = false
    /// The offset of the first of its tags; only for sinks that take values.
    var start: Int?
}

/// The last parsed EXTINF: most segments of a playlist are as long as the one before.
struct LastInf {
    /// The text after the tag's colon, up to and including the comma.
    let text: ShortText
    /// The whole line with its LF, if it holds only the duration.
    let line: ShortText?
    let duration: Duration
}

/// The last EXT-X-STREAM-INF, whose URI is still to come.
struct PendingVariant {
    let bandwidth: Int?
    /// The range of its line in the output.
    let written: Range<Int>
    /// True if EXTINF stands before it, without a URI in between.
    let followsInf: Bool
}

/// A line with a known tag.
struct TagLine {
    let name: Tag.Name
    let number: Int
    /// The whole line from its `#`.
    let range: Range<Int>
    /// The text after the colon; empty without one.
    let value: Range<Int>
}
