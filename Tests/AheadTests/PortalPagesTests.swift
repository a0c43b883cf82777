import Testing

@testable import Ahead

/// How long downloads wait for the end of a captive portal.
@Suite struct PortalPagesTests {
    private var pages = PortalPages()

    /// Fetches a piece, which comes as a page, several times.
    ///
    /// - Returns: how often the piece is fetched again.
    private mutating func retries(of piece: Int, pages count: Int) -> Int {
        var retries = 0
        for _ in 0..<count {
            pages.begins(piece)
            if pages.isWorthRetrying(piece) { retries += 1 }
        }
        return retries
    }

    @Test mutating func `a portal is waited out, although pieces requested before it are stored`() {
        pages.begins(0)
        pages.begins(0)
        let first = retries(of: 1, pages: 1)
        pages.stored(0, isFetched: true)
        let others = retries(of: 1, pages: 100)
        #expect(first == 1 && others == 100)
    }

    @Test mutating func `a page of one piece alone is given up after five further attempts`() {
        let first = retries(of: 0, pages: 1)
        pages.begins(1)
        pages.stored(1, isFetched: true)
        let others = retries(of: 0, pages: 100)
        #expect(first == 1 && others == 5)
    }

    @Test mutating func `pieces that were in the store before show nothing of a portal`() {
        let first = retries(of: 0, pages: 1)
        pages.begins(1)
        pages.stored(1, isFetched: false)
        let others = retries(of: 0, pages: 100)
        #expect(first == 1 && others == 100)
    }

    @Test mutating func `a second portal is waited out like the first`() {
        let first = retries(of: 0, pages: 1)
        pages.begins(0)
        pages.stored(0, isFetched: true)
        let second = retries(of: 1, pages: 100) + retries(of: 0, pages: 100)
        #expect(first == 1 && second == 200)
    }
}
