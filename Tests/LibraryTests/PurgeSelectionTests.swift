import Model
import Posix
import Retention
import Testing

@testable import Library
@testable import Store

/// Which objects several purges remove together.
@Suite struct PurgeSelectionTests {
    /// An object that was stored and used at times in seconds.
    private static func entry(
        _ url: String, title: UInt64 = 0, stored: Int64 = 5, used: Int64 = 5
    ) -> StoreEntry {
        StoreEntry(
            key: ObjectKey(sha256Of: url), url: url, role: 0, title: title, kind: .media,
            isRead: true, bytes: 1, total: 1, isComplete: true,
            created: WallTime(seconds: stored), knownUse: WallTime(seconds: used))
    }

    private static func order(_ subject: PurgeOrder.Subject, at seconds: Int64) -> PurgeOrder {
        PurgeOrder(subject, given: WallTime(seconds: seconds))
    }

    /// The pin of a title, which names the objects of these URLs.
    private static func pin(_ title: UInt64, _ urls: String...) -> Pin {
        Pin(
            title: title, url: "", since: WallTime(seconds: 1),
            keys: urls.map { ObjectKey(sha256Of: $0) })
    }

    /// A selection by every kind of purge, by times in seconds; objects of title 99 are pinned.
    private static func selection() throws -> PurgeSelection {
        var selection = PurgeSelection(pins: [pin(99)])
        selection.add([
            order(.texts(["http://a/1"]), at: 9), order(.texts(["http://a/1"]), at: 3),
            order(.texts(["http://a/2"]), at: 4), order(.titles([7, 99]), at: 9),
            order(.host(try #require(PurgeHost("b"))), at: 4),
            order(.host(try #require(PurgeHost("http://b:81"))), at: 9),
            order(.host(try #require(PurgeHost("[::1]"))), at: 9),
            order(.unusedSince(WallTime(seconds: 2)), at: 9),
            order(.prefixes([try #require(PurgePrefix("http://d/show7"))]), at: 4),
            order(.prefixes([try #require(PurgePrefix("http://d/show7/s1"))]), at: 9),
        ])
        return selection
    }

    @Test func `only purges of titles and of single objects need no search`() throws {
        let key = ObjectKey(sha256Of: "http://a/1")
        func selection(_ subject: PurgeOrder.Subject) -> PurgeSelection {
            var selection = PurgeSelection(pins: [])
            selection.add([Self.order(subject, at: 9)])
            return selection
        }
        let titles = selection(.titles([7]))
        #expect(titles.titleNumbers == [7] && titles.keys.isEmpty && !titles.needsSearch)
        let objects = selection(.objects([key]))
        #expect(objects.keys == [key] && !objects.needsSearch)
        // Responses to credentials have other keys.
        let texts = selection(.texts(["http://a/1"]))
        #expect(texts.keys == [key] && texts.needsSearch)
        #expect(selection(.unusedSince(WallTime(seconds: 1))).needsSearch)
        #expect(selection(.host(try #require(PurgeHost("b")))).needsSearch)
        #expect(selection(.prefixes([try #require(PurgePrefix("http://b/s"))])).needsSearch)
    }

    @Test(arguments: [
        (entry("http://a/1"), true),
        // Stored after its purge, or named by none.
        (entry("http://a/2"), false), (entry("http://a/3"), false),
        (entry("http://a/3", title: 7), true), (entry("http://a/3", title: 99), true),
        (entry("http://b:81/"), true), (entry("http://b:82/"), false),
        (entry("http://b:82/", stored: 4), true), (entry("https://b:81/"), false),
        (entry("http://[::1]:8/"), true), (entry("http://[::2]:8/"), false),
        (entry("http://c/", used: 1), true), (entry("http://c/", stored: 10, used: 1), false),
        (entry("http://d/show7?x viewer 0123456789ab", stored: 4), true),
        (entry("http://d/show7/s1/1.ts"), true), (entry("http://d/show7/s10/1.ts"), false),
        (entry("http://d/show7/s10/1.ts", stored: 4), true),
        (entry("http://d/show70", stored: 4), false), (entry("no URL"), false),
    ])
    func `an object goes if one of several purges selects it`(
        _ entry: StoreEntry, _ isRemoved: Bool
    ) throws {
        #expect(try Self.selection().fits(entry) == isRemoved)
    }

    @Test func `purges by host, prefix and age spare pinned objects`() throws {
        var selection = PurgeSelection(pins: [Self.pin(99, "http://b/1")])
        selection.add([
            Self.order(.host(try #require(PurgeHost("b"))), at: 9),
            Self.order(.prefixes([try #require(PurgePrefix("http://b/"))]), at: 9),
            Self.order(.unusedSince(WallTime(seconds: 8)), at: 9),
        ])
        #expect(selection.fits(Self.entry("http://b/")))
        #expect(!selection.fits(Self.entry("http://b/", title: 99)))
        #expect(!selection.fits(Self.entry("http://b/1")))
    }

    @Test func `purges by host, prefix and age also spare what is pinned later, others do not`()
        throws
    {
        let url = "http://b/1"
        let key = ObjectKey(sha256Of: url)
        func goes(_ subject: PurgeOrder.Subject) -> Bool {
            var selection = PurgeSelection(pins: []) { $0 == key && $1 == 7 }
            selection.add([Self.order(subject, at: 9)])
            return selection.fits(Self.entry(url, title: 7))
        }
        #expect(!goes(.host(try #require(PurgeHost("b")))))
        #expect(!goes(.prefixes([try #require(PurgePrefix("http://b/"))])))
        #expect(!goes(.unusedSince(WallTime(seconds: 8))))
        #expect(goes(.titles([7])) && goes(.texts([url])) && goes(.objects([key])))
    }

    @Test func `objects whose files are left go also if they are pinned, and no newer ones`() {
        let url = "http://a/1"
        var selection = PurgeSelection(pins: [Self.pin(7, url)])
        selection.add([Self.order(.objects([ObjectKey(sha256Of: url)]), at: 5)])
        #expect(selection.fits(Self.entry(url, title: 7)))
        #expect(!selection.fits(Self.entry(url, title: 7, stored: 6)))
        #expect(!selection.fits(Self.entry("http://a/2", title: 7)))
    }

    @Test func `a purge by title spares what the pin of another title names`() {
        let (own, common) = ("http://a/1", "http://a/2")
        var selection = PurgeSelection(pins: [Self.pin(7, own, common), Self.pin(8, common)])
        // A repeated order takes nothing more from the other title.
        for seconds in [8, 9] as [Int64] {
            selection.add([Self.order(.titles([7]), at: seconds)])
        }
        #expect(selection.fits(Self.entry(own, title: 7)))
        #expect(!selection.fits(Self.entry(common, title: 7)))
        // Unless that title is purged, too, or its URL is.
        selection.add([Self.order(.titles([8]), at: 9)])
        #expect(selection.fits(Self.entry(common, title: 7)))
        var other = PurgeSelection(pins: [Self.pin(8, common)])
        other.add([Self.order(.texts([common]), at: 9)])
        #expect(other.fits(Self.entry(common, title: 7)))
    }

    @Test func `a purge by title also spares what a pin names that is set later`() {
        let (own, late) = ("http://a/1", "http://a/2")
        let namings = [ObjectKey(sha256Of: own): 1, ObjectKey(sha256Of: late): 1]
        var selection = PurgeSelection(
            pins: [Self.pin(7, own)], namingsNow: { namings[$0, default: 0] })
        selection.add([Self.order(.titles([7]), at: 9)])
        // The pin of the purged title still names it.
        #expect(selection.fits(Self.entry(own, title: 7)))
        #expect(!selection.fits(Self.entry(late, title: 7)))
        #expect(selection.fits(Self.entry("http://a/3", title: 7)))
        selection.add([Self.order(.texts([late]), at: 9)])
        #expect(selection.fits(Self.entry(late, title: 7)))
    }

    @Test func `a title that was purged earlier keeps what its pin names and was stored since`() {
        let common = "http://a/2"
        var selection = PurgeSelection(pins: [Self.pin(8, common)])
        selection.add([Self.order(.titles([8]), at: 4), Self.order(.titles([7]), at: 9)])
        #expect(selection.fits(Self.entry(common, title: 7, stored: 4)))
        #expect(!selection.fits(Self.entry(common, title: 7, stored: 5)))
        selection.add([Self.order(.titles([8]), at: 9)])
        #expect(selection.fits(Self.entry(common, title: 7, stored: 5)))
    }

    @Test func `a purge given now removes what has a later time`() {
        var selection = PurgeSelection(pins: [])
        selection.add([Self.order(.titles([7]), at: 1)], isGivenNow: true)
        #expect(selection.fits(Self.entry("http://a/", title: 7)))
    }
}
