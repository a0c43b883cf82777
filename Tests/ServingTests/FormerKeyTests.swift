import CachePolicy
import HLS
import HTTP
import Logging
@testable import Model
import Posix
import Routing
import Store
import Synchronization
import Testing
import TimeShiftSupport
@testable import TimeShifting
import URISyntax

/// What is stored stays found when the rules that made its keys change.
@Suite final class FormerKeyTests {
    private let folder: String
    private let table: TimeShiftTable
    private let session = Session(
        id: SessionID(7), fields: Fields(), shift: .init(window: 600))
    private var keys: KeyTable { table.names.keys }

    /// What changes the keys of an origin.
    enum Change: CaseIterable {
        case noStore, length, mode, newRule, lostRule
    }

    init() throws {
        folder = try makeTemporaryFolder("former-keys")
        table = try TimeShiftTable(in: folder)
    }

    deinit {
        table.thread.stop()
        table.store.close()
        removeTree(folder)
    }

    /// The text of a segment's URL, with a token in Fastly's format.
    private func text(_ number: Int, token: Int = 0) -> String {
        let mac = String(repeating: "0", count: 39) + "\(token)"
        return "http://h/s\(number).ts?p=\(number)&token=\(1_893_456_000 + token)_\(mac)"
    }

    private func key(_ url: AbsoluteURL) -> CacheKey {
        keys.cacheKey(of: url, session: session, role: .segment)
    }

    /// Stores a segment under the key that its URL has now.
    private func keep(
        _ url: AbsoluteURL, title: UInt64 = 7, redirectedTo final: String? = nil,
        epoch: Epoch = .first, upTo end: Int64 = 4
    ) throws {
        let name = key(url).changing { $0.epoch = epoch }
        let head = StoredHead(
            status: .ok, fields: Fields(), requestTime: .now(), responseTime: .now(),
            finalURL: final ?? url.text)
        let body: [UInt8] = [1, 2, 3, 4]
        let object = try table.store.create(
            ObjectDescription(
                key: ObjectKey(name), url: name.text, role: ResourceRole.segment.letter,
                head: head.encoded, total: Int64(body.count), created: .now(), isStorable: true,
                title: title))
        try table.store.publish(object)
        var writer = FillWriter(object, from: 0, to: Int64(body.count))
        try body.prefix(Int(end)).withUnsafeBytes { try writer.append($0) }
        writer.end(failure: nil)
        table.store.finish(object)
    }

    private func settings(_ rules: [String], mode: KeyMode = .standard) throws -> KeySettings {
        var origin = OriginSettings(pattern: "h")
        origin.rules = try rules.map { try KeyRule($0) }
        var settings = KeySettings()
        settings.mode = mode
        settings.origins = KeyOrigins([origin])
        return settings
    }

    private func make(_ change: Change) throws {
        let url = try AbsoluteURL(text(0))
        switch change {
        case .noStore: keys.veto(.noStore, url, .media)
        case .length: keys.veto(.length, url, .media)
        case .mode: keys.replace(try settings(["drop p"], mode: .off))
        case .newRule: keys.replace(try settings(["drop p"]))
        case .lostRule: keys.replace(KeySettings())
        }
    }

    @Test(arguments: Change.allCases)
    func `a window has its segments after keys change`(_ change: Change) throws {
        if change == .lostRule { keys.replace(try settings(["drop p"])) }
        let list = table.list(try AbsoluteURL("http://h/l.m3u8"), of: session)
        let numbers = 0..<8
        let lines = numbers.map { "#EXTINF:2,\n\(text($0))\n" }.joined()
        let facts = ObjectFacts(
            head: StoredHead(
                status: .ok, fields: Fields(), requestTime: .now(), responseTime: .now(),
                finalURL: list.url.text, isPlaylist: true),
            generation: 1)
        _ = try list.merge(
            .init(
                body: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(lines)".utf8), base: list.url,
                key: ObjectKey(sha256Of: "list"), facts: facts),
            table)
        let urls = try numbers.map { try AbsoluteURL(text($0)) }
        for (number, url) in urls.enumerated() where number != 5 { try keep(url) }
        let former = urls.map { key($0) }
        try make(change)
        let current = urls.map { key($0) }
        #expect(Set(current).isDisjoint(with: former))
        list.verify(table, all: true)
        let missing = list.state.withLock { $0.missing }
        #expect(missing == [5])
        let keptKeys = numbers.filter { $0 != 5 }.map { ObjectKey(former[$0]) }
        // The next check finds them in the index, without their files.
        for _ in 1...2 {
            let found = list.state.withLock { $0.former.keys }
            #expect(Set(found.values) == Set(keptKeys))
            list.verify(table, all: true)
        }
        let stored = table.storedKey(urls[3], session, role: .segment, mark: 0)
        #expect(stored == ObjectKey(former[3]))
    }

    /// What the store has for a segment's URL under a former key.
    private func hasFormer(_ url: AbsoluteURL, _ session: Session) -> Bool {
        let found = keys.former(
            key(url), of: url, session, role: .segment, in: table.store, where: \.isComplete)
        return found != nil
    }

    @Test(arguments: [KeyVetoes.Reason.noStore, .length, .validator, .content])
    func `another URL's response is used unless such responses differ`(
        reason: KeyVetoes.Reason
    ) throws {
        let (kept, other) = (try AbsoluteURL(text(1)), try AbsoluteURL(text(1, token: 1)))
        try keep(kept)
        #expect(key(kept) == key(other))
        keys.veto(reason, kept, .media)
        #expect(hasFormer(kept, session))
        #expect(hasFormer(other, session) == (reason == .noStore))
        let stranger = Session(id: SessionID(8), fields: Fields())
        #expect(!hasFormer(other, stranger))
        try table.store.pin(title: 7, url: "http://h/l.m3u8", keys: [])
        #expect(!hasFormer(other, stranger))
    }

    @Test(arguments: [KeyVetoes.Reason.noStore, .content], [7 as UInt64, 9])
    func `a response of another path is treated as another URL's`(
        reason: KeyVetoes.Reason, title: UInt64
    ) throws {
        let paths = ["a", "b"].map { "http://h/hdntl=exp=1~acl=*~data=\($0)~hmac=00/s1.ts" }
        let (kept, other) = (try AbsoluteURL(paths[0]), try AbsoluteURL(paths[1]))
        try keep(kept, title: title)
        #expect(key(kept) == key(other))
        keys.veto(reason, kept, .media)
        #expect(key(kept) != key(other))
        #expect(hasFormer(kept, session))
        #expect(hasFormer(other, session) == (reason == .noStore && title == 7))
    }

    @Test(arguments: [KeyVetoes.Reason.noStore, .content], [7 as UInt64, 9])
    func `a redirected response does not count as the requested URL's`(
        reason: KeyVetoes.Reason, title: UInt64
    ) throws {
        let (kept, other) = (try AbsoluteURL(text(1)), try AbsoluteURL(text(1, token: 1)))
        try keep(kept, title: title, redirectedTo: "http://edge/x/s1.ts")
        keys.veto(reason, kept, .media)
        #expect(hasFormer(other, session) == (reason == .noStore && title == 7))
    }

    @Test(arguments: [KeyVetoes.Reason.noStore, .content], [7 as UInt64, 9])
    func `a recording keeps its own redirected responses`(
        reason: KeyVetoes.Reason, title: UInt64
    ) throws {
        let recording = Session(
            id: SessionID(7), fields: Fields(), shift: .init(recording: "0011aabb"))
        let (url, next) = (try AbsoluteURL(text(1)), try AbsoluteURL(text(2)))
        try keep(url, title: title, redirectedTo: "http://edge/x/s1.ts")
        // This last hop may be what was requested.
        try keep(next, title: title, redirectedTo: text(2, token: 1))
        keys.veto(reason, url, .media)
        #expect(hasFormer(url, recording) == (title == 7))
        #expect(hasFormer(next, recording) == (reason == .noStore && title == 7))
    }

    @Test(arguments: [KeyMode.standard, .off])
    func `a rule that the configuration has taken back counts for the own URL only`(
        mode: KeyMode
    ) throws {
        let texts = [1, 2].map { "http://h/s1.ts?q=\($0)" }
        let (kept, other) = (try AbsoluteURL(texts[0]), try AbsoluteURL(texts[1]))
        keys.replace(try settings(["drop q"], mode: mode))
        try keep(kept)
        #expect(key(kept) == key(other))
        keys.replace(try settings([], mode: mode))
        #expect(key(kept) != key(other))
        #expect(hasFormer(kept, session))
        #expect(!hasFormer(other, session))
    }

    @Test(arguments: [nil, .noStore, .content] as [KeyVetoes.Reason?])
    func `another URL's response is used after a rule was extended`(
        reason: KeyVetoes.Reason?
    ) throws {
        let texts = ["q=1&t=5", "q=2&t=5", "q=2&t=6&u=7"].map { "http://h/s1.ts?\($0)" }
        let urls = try texts.map { try AbsoluteURL($0) }
        keys.replace(try settings(["drop q"]))
        try keep(urls[0])
        #expect(key(urls[0]) == key(urls[1]) && key(urls[0]) != key(urls[2]))
        keys.replace(try settings(["drop q t"]))
        if let reason { keys.veto(reason, urls[0], .media) }
        #expect(hasFormer(urls[0], session))
        #expect(hasFormer(urls[1], session) == (reason == nil))
        #expect(!hasFormer(urls[2], session))
    }

    @Test func `signatures that are part of keys again count for the own URL only`() throws {
        let (kept, other) = (try AbsoluteURL(text(1)), try AbsoluteURL(text(1, token: 1)))
        try keep(kept)
        keys.replace(try settings(["drop p"], mode: .off))
        #expect(hasFormer(kept, session))
        #expect(!hasFormer(other, session))
    }

    @Test func `another URL's response is used after a rule was added`() throws {
        let (kept, other) = (try AbsoluteURL(text(1)), try AbsoluteURL(text(1, token: 1)))
        try keep(kept)
        keys.replace(try settings(["drop p"]))
        #expect(hasFormer(kept, session))
        #expect(hasFormer(other, session))
    }

    /// Reads a live list that names one segment, some seconds from now.
    private func read(_ url: AbsoluteURL, number: Int, after seconds: Int64) throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(number)\n"
        let reading = try #require(
            try LiveReading(
                Array("\(text)#EXTINF:2,\n\(url.text)\n".utf8),
                base: try AbsoluteURL("http://h/l.m3u8"), options: PlaylistReading()))
        let time = WallTime.now() + .seconds(seconds)
        let place = LiveMemory.Place(
            list: ObjectKey(sha256Of: "list"), generation: UInt64(number),
            times: .init(requested: time, received: time), keyVersion: keys.version)
        table.names.live.take(reading, at: place) { url, _ in ObjectKey(self.key(url)) }
    }

    private func isServed(
        _ url: AbsoluteURL, _ session: Session, _ role: ResourceRole?, isOriginUp: Bool
    ) -> Bool {
        let resource = table.names.resource(url, session, role: role, forwarding: Fields())
        let former = resource.underFormerKey(
            keys, table.names.live, table.store, isOriginUp: isOriginUp, where: \.isComplete)
        return former != nil
    }

    @Test func `a name in the window that is used again is not served under its former key`()
        throws
    {
        let (url, next) = (try AbsoluteURL(text(1)), try AbsoluteURL(text(2)))
        try keep(url)
        keys.veto(.noStore, url, .media)
        #expect(isServed(url, session, .segment, isOriginUp: true))
        try read(url, number: 1, after: 10)
        #expect(!isServed(url, session, .segment, isOriginUp: true))
        #expect(isServed(url, session, .segment, isOriginUp: false))
        try read(next, number: 2, after: 12)
        #expect(isServed(url, session, .segment, isOriginUp: true))
    }

    @Test func `a name is found in the current epoch of its former key`() throws {
        let url = try AbsoluteURL(text(1))
        let live = table.names.live
        try read(url, number: 100_000, after: 0)
        try read(url, number: 1, after: 10)
        let epoch = live.epoch(of: ObjectKey(key(url)))
        #expect(epoch != .first)
        try keep(url)
        try keep(url, epoch: epoch)
        keys.veto(.noStore, url, .media)
        let found = keys.former(
            key(url), of: url, session, role: .segment, in: table.store, live: live,
            where: \.isComplete)
        #expect(found?.key.epoch == epoch)
    }

    @Test func `a part under the present key does not hide the whole under a former one`() throws {
        let url = try AbsoluteURL(text(1))
        try keep(url)
        let former = ObjectKey(key(url))
        keys.veto(.noStore, url, .media)
        try keep(url, upTo: 2)
        let present = ObjectKey(key(url))
        #expect(table.store.peek(present)?.isComplete == false)
        #expect(table.storedKey(url, session, role: .segment, mark: 0) == former)
        table.store.remove(present)
        try keep(url)
        #expect(table.storedKey(url, session, role: .segment, mark: 0) == present)
    }

    @Test func `only what may be gone is served under a former key while its origin answers`()
        throws
    {
        let url = try AbsoluteURL(text(1))
        try keep(url)
        keys.veto(.noStore, url, .media)
        let plain = Session(id: SessionID(8), fields: Fields())
        #expect(isServed(url, plain, .segment, isOriginUp: false))
        #expect(!isServed(url, plain, .segment, isOriginUp: true))
        #expect(isServed(url, session, .segment, isOriginUp: true))
        #expect(!isServed(url, session, nil, isOriginUp: true))
        try table.store.pin(title: 8, url: "http://h/l.m3u8", keys: [])
        #expect(isServed(url, plain, .segment, isOriginUp: true))
    }
}
