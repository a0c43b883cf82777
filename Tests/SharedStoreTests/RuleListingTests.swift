import Numbers
import Posix
import Testing

@testable import SharedStore

@Suite struct RuleListingTests {
    private static let start: Int64 = 1_700_000_000
    private static let most = 20

    /// The name of a rule that was given so many seconds after the first one.
    private static func rule(_ seconds: Int64) -> String {
        "v1/rules/" + String((start + seconds) * 1_000_000_000, width: 19) + "-ab"
    }

    /// One each ten minutes.
    private static func rules(_ count: Int64) -> [String] { (0..<count).map { rule($0 * 600) } }

    /// Lists a bucket in pages of ten names, so many seconds after its first rule.
    private static func look(
        _ listing: inout RuleListing, _ bucket: [String], at seconds: Int64
    ) -> (names: [String], pages: Int) {
        let now = Monotonic(nanoseconds: seconds * 1_000_000_000)
        listing.begin(now: now)
        let start = listing.start ?? ""
        var left = bucket.sorted().filter { $0 > start }[...]
        var pages = 0
        var goesOn = true
        while goesOn {
            pages += 1
            goesOn = listing.add(Array(left.prefix(10))) && left.count > 10
            left = left.dropFirst(10)
        }
        return (listing.end(now: now, wall: WallTime(seconds: Self.start + seconds)), pages)
    }

    @Test func `of more rules than are followed the latest are seen`() {
        var listing = RuleListing(most: Self.most)
        let bucket = Self.rules(101)
        let found = Self.look(&listing, bucket, at: 60_000)
        #expect(found.names == Array(bucket.suffix(Self.most)))
        #expect(found.pages == 11)
    }

    @Test func `a look at many rules lists the latest hour, and all of them every ten minutes`() {
        var listing = RuleListing(most: Self.most)
        var bucket = Self.rules(101)
        _ = Self.look(&listing, bucket, at: 60_000)
        // A new one, and one of a node that could not write it for two hours.
        let (new, late) = (Self.rule(60_003), Self.rule(52_801))
        bucket += [new, late]
        let next = Self.look(&listing, bucket, at: 60_005)
        #expect(next.names.last == new && next.pages == 1)
        #expect(!next.names.contains(late))
        let whole = Self.look(&listing, bucket, at: 60_600)
        #expect(whole.names.contains(late) && whole.pages == 11)
        #expect(listing.start == nil)
    }

    @Test func `few rules are listed whole each time`() {
        var listing = RuleListing(most: Self.most)
        for seconds: Int64 in [1_000, 1_005] {
            let found = Self.look(&listing, Self.rules(20), at: seconds)
            #expect(found.names == Self.rules(20))
        }
    }

    @Test func `a rule of a clock that is ahead hides none`() {
        var listing = RuleListing(most: Self.most)
        var bucket = Self.rules(101) + [Self.rule(999_999_999), "v1/rules/zzz"]
        _ = Self.look(&listing, bucket, at: 60_000)
        bucket.append(Self.rule(60_003))
        let next = Self.look(&listing, bucket, at: 60_005)
        #expect(next.names.contains(Self.rule(60_003)))
    }

    @Test func `where the store cannot start later all are listed`() {
        var listing = RuleListing(most: Self.most)
        _ = Self.look(&listing, Self.rules(101), at: 60_000)
        listing.begin(now: Monotonic(nanoseconds: 60_005_000_000_000))
        #expect(listing.start != nil)
        listing.fail()
        let next = Self.look(&listing, Self.rules(101), at: 60_010)
        #expect(next.pages == 11)
    }

    @Test func `a listing that repeats a page ends`() {
        var listing = RuleListing(most: Self.most)
        listing.begin(now: Monotonic(nanoseconds: 1))
        var pages = 1
        while listing.add(Self.rules(10)), pages < 1_000 { pages += 1 }
        #expect(pages == RuleListing.mostRepeated)
        let names = listing.end(now: Monotonic(nanoseconds: 2), wall: WallTime(seconds: 1))
        #expect(names == Self.rules(10))
    }
}
