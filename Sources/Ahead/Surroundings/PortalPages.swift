/// Decides whether a piece of a download that came as an HTML page is fetched again.
///
/// A captive portal answers every request like that until its user has signed in, so its pages are
/// waited out, as long as `RetryPause` allows. If pieces requested after the page come right, it is
/// the page of this piece alone.
struct PortalPages: Sendable, Equatable {
    /// The most further attempts for a piece that comes as a page while others come right.
    static let mostAttempts = 5

    private struct Page: Equatable {
        /// The number of fetches begun before it came.
        let begun: Int
        /// The further pages since others came right.
        var repeats = 0
    }

    /// The number of fetches begun.
    private var begun = 0
    /// The number of the last fetch of each piece.
    private var numbers: [Int: Int] = [:]
    /// The number of the last fetch whose piece came from the origin.
    private var lastStored = 0
    /// The first page of each piece.
    private var pages: [Int: Page] = [:]

    /// Notes that a piece is requested.
    mutating func begins(_ piece: Int) {
        begun += 1
        numbers[piece] = begun
    }

    /// Notes that a piece is stored.
    ///
    /// - Parameters:
    ///   - piece: the index of the piece.
    ///   - isFetched: false if it was in the store before, which shows nothing of a portal.
    mutating func stored(_ piece: Int, isFetched: Bool) {
        let number = numbers.removeValue(forKey: piece) ?? 0
        if isFetched { lastStored = max(lastStored, number) }
        pages[piece] = nil
    }

    /// Notes a page in place of a piece.
    ///
    /// - Returns: true if the piece is fetched again after a pause.
    mutating func isWorthRetrying(_ piece: Int) -> Bool {
        var page = pages[piece] ?? Page(begun: begun)
        if lastStored > page.begun { page.repeats += 1 }
        pages[piece] = page
        return page.repeats <= Self.mostAttempts
    }
}
