import RetentionLab
import Testing

/// The capacity model: conservation, limits that are known without it, and the same for a seed.
@Suite struct CapacityTests {
    private func small(_ change: (inout CapacityScenario) -> Void = { _ in }) -> CapacityScenario {
        var scenario = CapacityScenario()
        scenario.titles = 40
        scenario.minutes = 20
        scenario.players = 200
        scenario.nodes = 4
        scenario.warmUp = 4
        scenario.hours = 4
        scenario.disk = scenario.pieceBytes * 100
        change(&scenario)
        return scenario
    }

    @Test func `the same seed gives the same flow, and another one nearly the same`() {
        let one = CapacityModel.run(small(), seed: 1)
        #expect(one == CapacityModel.run(small(), seed: 1))
        let other = CapacityModel.run(small(), seed: 2)
        #expect(one != other)
        #expect(abs(one.nodeHitRatio - other.nodeHitRatio) < 0.03)
    }

    @Test func `each player asks for one piece a minute, and no level gets more than it was asked`()
    {
        let flow = CapacityModel.run(small(), seed: 1)
        #expect(flow.asked == 200 * 240)
        #expect(flow.missedByNodes <= flow.asked && flow.missedBySecond <= flow.missedByNodes)
        #expect(abs(flow.playerRate - 200 * 5e6) < 1)
    }

    @Test func `a disk for all titles ends misses, and no disk passes everything on`() {
        let whole = CapacityModel.run(small { $0.disk = .max }, seed: 1)
        #expect(whole.nodeHitRatio > 0.99)
        let none = CapacityModel.run(small { $0.disk = 0 }, seed: 1)
        #expect(none.nodeHitRatio == 0)
        // A second level without a limit has everything that was ever asked for.
        #expect(none.secondHitRatio > 0.99)
        let alone = CapacityModel.run(small { $0.second = nil }, seed: 1)
        #expect(alone.missedBySecond == alone.missedByNodes)
    }

    @Test func `nodes add up: twice as many with half the disk keep as much`() {
        let few = CapacityModel.run(small(), seed: 1)
        let many = CapacityModel.run(
            small {
                $0.nodes = 8
                $0.disk /= 2
            }, seed: 1)
        #expect(abs(few.nodeHitRatio - many.nodeHitRatio) < 0.03)
        let more = CapacityModel.run(small { $0.nodes = 8 }, seed: 1)
        #expect(more.nodeHitRatio > few.nodeHitRatio + 0.1)
    }

    @Test func `headers and the room for new objects are taken off a disk`() {
        var scenario = small()
        scenario.disk = 64 << 20
        #expect(scenario.usableDisk == 60 << 20)
        scenario.disk = 63 << 20
        #expect(scenario.usableDisk == 63 << 20)
        scenario.disk = 1 << 40
        #expect(scenario.usableDisk == (1 << 40) - (64 << 20))
        // A header of 4 kB beside each 62.5 kB of segment.
        let plain = CapacityModel.run(small(), seed: 1)
        let many = CapacityModel.run(small { $0.segment = 0.1 }, seed: 1)
        #expect(many.nodeHitRatio < plain.nodeHitRatio - 0.01)
    }

    @Test func `a title that comes back stays, those watched once go first`() {
        // Every player of the first title keeps it; LRU of pieces would have lost its end.
        let flat = CapacityModel.run(small { $0.exponent = 0 }, seed: 1)
        let steep = CapacityModel.run(small { $0.exponent = 1.5 }, seed: 1)
        #expect(steep.nodeHitRatio > flat.nodeHitRatio + 0.2)
    }

    @Test func `replaced nodes cost misses, which the second level answers`() {
        let calm = CapacityModel.run(small { $0.disk = .max }, seed: 1)
        let churn = CapacityModel.run(
            small {
                $0.disk = .max
                $0.replacement = 0.5
            }, seed: 1)
        #expect(churn.missedByNodes > calm.missedByNodes + 400)
        #expect(churn.missedBySecond <= 800)
    }

    @Test func `a live event costs its origin once for each node that the bounded load fills`() {
        var event = LiveEvent()
        event.variants = 1
        let one = event.flow(nodes: 1)
        #expect(one.copies == 1 && one.nodeRate == event.rate)
        let many = event.flow(nodes: 64)
        #expect(many.copies == 22 && many.nodeRate == event.rate * 22)
        // A parent collapses what the nodes ask for.
        #expect(many.parentRate == event.rate && many.parentRequests == one.nodeRequests)
        #expect(many.playerRate == 5e12)
        event.part = 0.5
        #expect(event.flow(nodes: 1).nodeRequests == 4)
        event.variants = 0
        event.balanceFactor = 0
        #expect(event.flow(nodes: 0).copies == 1)
    }

    @Test func `prices follow bytes and requests`() {
        var prices = CapacityPrices()
        prices.originGigabyte = 1
        prices.secondThousand = 0
        let flow = CapacityModel.run(
            small {
                $0.disk = 0
                $0.second = nil
            }, seed: 1)
        // 1 Gbit/s for a month: 730 hours of 450 GB.
        #expect(abs(prices.month(flow, hasSecond: false) - 730 * 450) < 1)
        prices.originGigabyte = 0
        prices.originThousand = 1
        #expect(
            abs(prices.month(flow, hasSecond: false) - flow.originRequests * 730 * 3.6) < 0.01)
    }
}
