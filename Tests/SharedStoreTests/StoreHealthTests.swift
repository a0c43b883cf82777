import HTTP
import Posix
import SharedStore
import Testing

struct StoreHealthTests {
    @Test func `failures in a row leave the store out, and a probe brings it back`() {
        var health = StoreHealth()
        #expect(health.failed() == nil && health.failed() == nil)
        #expect(health.failed() == StoreHealth.firstPause && health.state == .out)
        #expect(health.failed() == nil)
        #expect(health.probed(false) == .seconds(2 as Int64))
        for _ in 0..<20 { _ = health.probed(false) }
        #expect(health.probed(false) == StoreHealth.longestPause)
        #expect(health.probed(true) == nil && health.state == .up)
        #expect(health.failed() == nil)
    }

    @Test func `reads that become slow leave the store out, however soon they began`() {
        var health = StoreHealth()
        for _ in 1..<StoreHealth.mostFailures {
            health.answered()
            #expect(health.slowed() == nil)
            health.completed(ReadPace.leastBytes - 1)
        }
        health.completed(ReadPace.leastBytes)
        for _ in 1..<StoreHealth.mostFailures {
            health.answered()
            #expect(health.slowed() == nil)
        }
        #expect(health.slowed() == StoreHealth.firstPause && health.state == .out)
    }

    @Test func `a store without the bucket is left out at once`() {
        var health = StoreHealth()
        #expect(health.missedBucket() == StoreHealth.firstPause && health.state == .out)
        #expect(health.missedBucket() == nil)
        #expect(health.probed(true) == nil && health.state == .up)
    }

    @Test func `answers between failures keep it in use`() {
        var health = StoreHealth()
        for _ in 0..<100 {
            #expect(health.failed() == nil && health.failed() == nil)
            health.answered()
        }
        #expect(health.state == .up)
    }

    @Test func `what is written between lost races does not keep a slow store in use`() {
        var health = StoreHealth()
        for _ in 1..<StoreHealth.mostLosses {
            #expect(health.lost() == nil)
            health.wrote()
        }
        #expect(health.lost() == StoreHealth.firstPause && health.state == .out)
    }

    @Test func `what is written between failures keeps the store in use`() {
        var health = StoreHealth()
        for _ in 0..<100 {
            #expect(health.failed() == nil && health.failed() == nil)
            health.wrote()
        }
        #expect(health.state == .up)
    }

    @Test func `a store that loses race after race is left out`() {
        var health = StoreHealth()
        for _ in 1..<StoreHealth.mostLosses { #expect(health.lost() == nil) }
        #expect(health.lost() == StoreHealth.firstPause && health.state == .out)
    }
}

struct SharingRuleTests {
    private func facts(_ change: (inout SharingRule.Facts) -> Void) -> SharingRule.Facts {
        var facts = SharingRule.Facts()
        change(&facts)
        return facts
    }

    private func fields(_ name: FieldName, _ value: String) -> SharingRule.Facts {
        facts { $0.fields.append(name, value) }
    }

    @Test func `media and lists of films may be shared`() {
        #expect(SharingRule.refusal(SharingRule.Facts()) == nil)
        #expect(SharingRule.refusal(facts { $0.playlistIsLive = false }) == nil)
        #expect(SharingRule.refusal(fields(.cacheControl, "public, max-age=5")) == nil)
        #expect(SharingRule.refusal(fields("Vary", "Accept-Encoding, Origin")) == nil)
        #expect(SharingRule.refusal(facts { $0.setsCookies = true }) == nil)
    }

    @Test func `what belongs to one viewer, or changes, may not`() {
        #expect(SharingRule.refusal(fields(.cacheControl, "private=\"x\"")) == .isPrivate)
        #expect(SharingRule.refusal(fields(.cacheControl, "max-age=1, No-Store")) == .isPrivate)
        #expect(SharingRule.refusal(fields("Vary", "Cookie")) == .isPrivate)
        #expect(SharingRule.refusal(facts { $0.playlistIsLive = true }) == .live)
        #expect(
            SharingRule.refusal(
                facts {
                    $0.playlistIsLive = false
                    $0.setsCookies = true
                }) == .live)
        #expect(SharingRule.refusal(facts { $0.isKey = true }) == .key)
        #expect(
            SharingRule.refusal(
                facts {
                    $0.isKey = true
                    $0.sharesKeys = true
                }) == nil)
        #expect(SharingRule.refusal(facts { $0.followsHTTP = true }) == .rules)
        #expect(SharingRule.refusal(facts { $0.isOfViewer = true }) == .viewer)
        #expect(SharingRule.refusal(facts { $0.isPlain200 = false }) == .form)
    }
}
