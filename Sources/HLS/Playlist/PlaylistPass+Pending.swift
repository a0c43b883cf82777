import URISyntax

/// What tags have said about the segment whose URI is still to come.
struct PendingSegment {
    var hasInf = false
    var duration: Duration?
    var byteRange: WrittenSubRange?
    var isGap = false
    /// Where the first of its tags starts; only for sinks that take values.
    var start: Int?
}

/// An EXTINF that was read: most segments of a list are as long as the one before.
struct LastInf {
    /// From behind the tag's colon up to and with the comma.
    let text: ShortText
    /// The whole line with its LF, where no more than the duration stands in it.
    let line: ShortText?
    let duration: Duration
}

/// What EXT-X-STREAM-INF has said about the variant whose URI is still to come.
struct PendingVariant {
    let bandwidth: Int?
    /// Where its line stands in what is written.
    let written: Range<Int>
}

/// A line with a known tag.
struct TagLine {
    let name: Tag.Name
    let number: Int
    /// The whole line from its `#`.
    let range: Range<Int>
    /// What stands behind the colon; empty without one.
    let value: Range<Int>
}

/// What a line says about the resource it names, beyond the URI.
struct Particulars {
    let role: ResourceRole
    let tag: Tag.Name
    let line: Int
    var byteRange: SubRange?
    var hasRangeStart = false
    var duration: Duration?
    var isGap = false
    var partIndex: Int?
    var bandwidth: Int?
}
