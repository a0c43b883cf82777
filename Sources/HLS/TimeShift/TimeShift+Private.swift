/// Windows of lists that redirects have led to a private host now and then: what that host listed
/// stays in the window after the origin's text comes from a public one again.
extension TimeShift {
    /// True if the window may have something that a private host listed.
    package var mayBePrivate: Bool {
        guard let privateEnd else { return false }
        return (segments.first?.number ?? 0) < privateEnd || segments.isEmpty
    }

    /// Records that the text that was merged last may come from a private host.
    package mutating func markPrivate() {
        privateEnd = (segments.last?.number ?? -1) + 1
    }
}

/// The comment line in which a snapshot stores which segments a private host may have listed.
struct PrivateSegmentsNote {
    private static let start = Array("#SLUICE-PRIVATE-UP-TO:".utf8)
    /// The number after that of the last such segment.
    let end: Int

    init(end: Int) { self.end = end }

    /// Parses the comment; nil for any other comment.
    init?(_ line: ArraySlice<UInt8>) {
        guard line.starts(with: Self.start),
            let end = DecimalNumber.integer(line.dropFirst(Self.start.count))
        else { return nil }
        self.end = end
    }

    var line: String { "#SLUICE-PRIVATE-UP-TO:\(end)\n" }
}
