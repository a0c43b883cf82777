import HLS
import Model
import Posix
import Routing
import Store
import Synchronization
import Testing
import URISyntax

@testable import Library

/// Counts how often lists are read: each reading asks for the epochs of the list's names.
private final class ReadingCount: Sendable {
    private let count = Mutex(0)

    func note() -> [AbsoluteURL: Epoch] {
        count.withLock { $0 += 1 }
        return [:]
    }

    var value: Int { count.withLock { $0 } }
}

/// Listings of titles with long lists, which are read once for each state of their objects.
@Suite struct ListedTitleTests {
    private static let list = "http://h/l.m3u8"

    /// Stores the list of a title, and nothing of its segments.
    private func keepList(of count: Int, in stage: TitleStage) throws -> Session {
        let url = try AbsoluteURL(Self.list)
        let session = Session(startingAt: url)
        let segments = (0..<count).map { "#EXTINF:4,\n\($0).ts\n" }.joined()
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(segments)#EXT-X-ENDLIST\n"
        let key = try #require(stage.keys.entryKeys(url, of: session).first)
        try stage.store.keep(
            Array(text.utf8), as: key, at: url, .playlist, title: session.id.number)
        return session
    }

    private func keepSegment(
        _ number: Int, ofTitle title: UInt64, in stage: TitleStage
    ) throws {
        let url = try AbsoluteURL("http://h/\(number).ts")
        try stage.store.keep(
            [1], as: stage.keys.mediaKey(url, in: .first), at: url, .segment, title: title)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
    }

    private func catalogue(_ stage: TitleStage, counting count: ReadingCount) -> TitleCatalogue {
        TitleCatalogue(
            store: stage.store, sessions: stage.sessions, keys: stage.keys,
            currentEpochs: { _ in count.note() })
    }

    @Test func `a long list is read again only if the title's objects have changed`() throws {
        let stage = try TitleStage()
        let (count, figures) = (ReadingCount(), TitleFigures())
        let catalogue = catalogue(stage, counting: count)
        let session = try keepList(of: 2_000, in: stage)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
        let first = try #require(catalogue.listed(session.id, figures))
        #expect(first.best?.keptSeconds == 0 && first.best?.seconds == 8_000)
        let again = try #require(catalogue.listed(session.id, figures))
        #expect(count.value == 1 && again.json.encoded == first.json.encoded)
        try keepSegment(7, ofTitle: session.id.number, in: stage)
        #expect(catalogue.listed(session.id, figures)?.best?.keptSeconds == 4)
        #expect(count.value == 2)
        try stage.store.pin(title: session.id.number, url: Self.list, keys: [])
        #expect(catalogue.listed(session.id, figures)?.isPinned == true)
        #expect(count.value == 3)
    }

    @Test func `a short list is read each time`() throws {
        let stage = try TitleStage()
        let (count, figures) = (ReadingCount(), TitleFigures())
        let catalogue = catalogue(stage, counting: count)
        let session = try keepList(of: 20, in: stage)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
        for _ in 0..<2 { #expect(catalogue.listed(session.id, figures) != nil) }
        #expect(count.value == 2 && figures.count == 0)
    }

    @Test func `what another title brings is seen after a minute`() throws {
        let stage = try TitleStage()
        let figures = TitleFigures()
        let catalogue = catalogue(stage, counting: ReadingCount())
        let session = try keepList(of: 1_000, in: stage)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
        let title = try #require(catalogue.title(session.id))
        let own = try #require(stage.store.mark(ofTitle: session.id.number))
        let mark = TitleFigures.Mark(
            own: own.mark, pinned: nil, entry: nil, removals: 0, rules: 0)
        let start = Monotonic.now()
        figures.keep(title, mark, 1, at: start)
        let (soon, late) = (start + .seconds(59 as Int64), start + .seconds(60 as Int64))
        #expect(figures.title(session.id, mark, 2, at: soon) != nil)
        #expect(figures.title(session.id, mark, 2, at: late) == nil)
        #expect(figures.title(session.id, mark, 1, at: late) != nil)
        // All that the title needs is its own.
        figures.keep(title, mark, nil, at: start)
        #expect(figures.title(session.id, mark, 2, at: late) != nil)
        let purged = TitleFigures.Mark(
            own: own.mark, pinned: nil, entry: nil, removals: 1, rules: 0)
        #expect(figures.title(session.id, purged, 2, at: soon) == nil)
    }

    @Test func `the figures that are kept have a bound`() throws {
        let stage = try TitleStage()
        let figures = TitleFigures()
        let session = try keepList(of: 1, in: stage)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
        var title = try #require(
            catalogue(stage, counting: ReadingCount()).title(session.id))
        let own = try #require(stage.store.mark(ofTitle: session.id.number))
        let mark = TitleFigures.Mark(
            own: own.mark, pinned: nil, entry: nil, removals: 0, rules: 0)
        for number in 1...(TitleFigures.mostVariants + 100) {
            title.id = SessionID(UInt64(number))
            figures.keep(title, mark, nil, at: .now())
        }
        #expect(figures.count == TitleFigures.mostVariants)
        #expect(figures.title(title.id, mark, 0, at: .now()) != nil)
    }
}
