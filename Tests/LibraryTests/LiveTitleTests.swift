import HLS
import Logging
import Model
import Posix
import Store
import Testing
import URISyntax

@testable import Library

/// Titles of streams that still run.
@Suite struct LiveTitleTests {
    @Test(arguments: [Epoch.first, Epoch(number: 7)], [false, true])
    func `a list that is or was live has what its names mean now`(
        stored: Epoch, isEnded: Bool
    ) throws {
        let folder = try makeTemporaryFolder("live-title")
        defer { removeTree(folder) }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0),
            log: Logger(label: "live-title-tests"))
        defer { store.close() }
        let keys = KeyTable(
            settings: KeySettings(), database: store.state, counters: Counters())
        let (list, segment) = try (AbsoluteURL("http://h/l.m3u8"), AbsoluteURL("http://h/a.ts"))
        let session = Session(startingAt: list)
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"
            + (isEnded ? "#EXT-X-ENDLIST\n" : "")
        let listKey = try #require(keys.entryKeys(list, of: session).first)
        try store.keep(Array(text.utf8), as: listKey, at: list, .playlist)
        // The name was used again: what it meant before is no part of the list.
        try store.keep(
            Array("media".utf8), as: keys.mediaKey(segment, in: stored), at: segment, .segment)
        #expect(try store.flush(within: .seconds(20 as Int64)))
        let catalogue = TitleCatalogue(
            store: store, sessions: SessionTable(store.state), keys: keys,
            currentEpochs: { $0 == listKey ? [segment: Epoch(number: 7)] : [:] })
        let title = try #require(catalogue.titles(startingAt: list).first)
        #expect(title.kind == (isEnded ? .vod : .live))
        #expect(title.best?.percent == (stored == .first ? 0 : 100))
    }
}
