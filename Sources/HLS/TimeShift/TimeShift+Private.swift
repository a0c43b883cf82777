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
