import Lookahead
import Testing

/// The controllers of concurrency on simulated links.
@Suite struct ConcurrencyTests {
    @Test(arguments: SimulatedLink.all)
    func `probing reaches the goodput of the best fixed number, less 5 percent`(link: SimulatedLink)
    {
        var link = link
        var controller = ConcurrencyController(.probe)
        _ = link.run(&controller, samples: 30)
        let run = link.run(&controller, samples: 300)
        #expect(run.goodput >= link.best * 0.95)
        #expect(run.most <= 32)
    }

    @Test func `probing starts at four`() {
        #expect(ConcurrencyController(.probe).limit == 4)
    }

    @Test func `probing starts with the last limit of this network`() {
        #expect(ConcurrencyController(.probe, start: 11).limit == 11)
    }

    @Test func `probing steps back from an increase without gain`() {
        var link = SimulatedLink(shared: 875_000, single: 560_000, latency: 0.1)
        var controller = ConcurrencyController(.probe, start: 32)
        _ = link.run(&controller, samples: 600)
        #expect(controller.limit <= 8)
    }

    @Test func `probing leaves a limit that overflows the queue`() {
        var link = SimulatedLink(shared: 2_000_000, single: 400_000, latency: 0.1)
        link.tolerated = 8
        var controller = ConcurrencyController(.probe)
        _ = link.run(&controller, samples: 40)
        #expect(link.run(&controller, samples: 300).goodput >= link.best * 0.9)
    }

    @Test func `probing stays below the number that an origin rejects`() {
        var link = SimulatedLink(shared: 50_000_000, single: 1_000_000, latency: 0.05)
        link.refusedAbove = 10
        var controller = ConcurrencyController(.probe)
        _ = link.run(&controller, samples: 100)
        #expect(link.run(&controller, samples: 20).goodput >= link.goodput(5) * 0.95)
    }

    @Test func `probing climbs again when the link gets faster`() {
        var link = SimulatedLink(shared: 300_000, single: 200_000, latency: 0.1)
        var controller = ConcurrencyController(.probe)
        _ = link.run(&controller, samples: 100)
        var faster = SimulatedLink(shared: 20_000_000, single: 2_000_000, latency: 0.05)
        _ = faster.run(&controller, samples: 60)
        #expect(faster.run(&controller, samples: 100).goodput >= faster.best * 0.9)
    }

    @Test func `an outage does not change the limit`() {
        var link = SimulatedLink(shared: 12_000_000, single: 500_000, latency: 0.2)
        var controller = ConcurrencyController(.probe)
        _ = link.run(&controller, samples: 200)
        let before = controller.limit
        for _ in 0..<20 { controller.note(LinkSample(seconds: 0.3, bytes: 0)) }
        #expect(controller.limit == before)
    }

    @Test func `transfers below the limit do not change it`() {
        var controller = ConcurrencyController(.probe)
        for bytes in [1_000, 1_000_000, 5_000_000, 9_000_000] as [Int64] {
            for _ in 0..<5 {
                controller.note(LinkSample(seconds: 0.3, bytes: bytes, isFull: false))
            }
        }
        #expect(controller.limit == 4)
    }

    @Test func `a fixed number does not change`() {
        var link = SimulatedLink.all[4]
        var controller = ConcurrencyController(.fixed(7))
        #expect(link.run(&controller, samples: 100).most == 7)
        #expect(controller.limit == 7)
    }

    @Test func `probing does not exceed the ceiling of its conditions`() {
        var link = SimulatedLink.all[4]
        var controller = ConcurrencyController(.probe)
        controller.ceiling = 3
        #expect(link.run(&controller, samples: 100).most <= 3)
    }

    @Test(arguments: ["fixed:1", "fixed:32", "table", "probe"])
    func `a plan is parsed as it is written`(text: String) {
        #expect(ConcurrencyPlan(text)?.description == text)
    }

    @Test(arguments: ["", "fixed", "fixed:0", "fixed:33", "fixed:x", "fast"])
    func `other text is not a plan`(text: String) {
        #expect(ConcurrencyPlan(text) == nil)
    }
}

@Suite struct ConcurrencyLimitsTests {
    @Test func `the total limit follows a single host`() {
        var link = SimulatedLink.all[4]
        var limits = ConcurrencyLimits(.probe)
        for _ in 0..<200 {
            let sample = link.sample(limits.limit(of: "a"))
            limits.note(sample, each: ["a": sample])
        }
        #expect(limits.limit(of: "a") == limits.limit)
        #expect(limits.limit > 16)
    }

    @Test func `a host that rejects requests gets fewer, others continue`() {
        var limits = ConcurrencyLimits(.probe, start: 16)
        let good = LinkSample(seconds: 0.3, bytes: 3_000_000, isFull: false, finished: 10)
        var bad = LinkSample(seconds: 0.3, bytes: 100_000, isFull: false, finished: 1)
        bad.errors = 3
        var both = good
        both.finished = 60
        limits.note(both, each: ["good": good, "bad": bad])
        #expect(limits.limit(of: "bad") == 8)
        #expect(limits.limit(of: "good") == 16)
    }

    @Test func `what recordings alone use up says nothing of a host's limit`() {
        var limits = ConcurrencyLimits(.probe, start: 16)
        let good = LinkSample(seconds: 0.3, bytes: 3_000_000, isFull: false, finished: 10)
        var bad = LinkSample(seconds: 0.3, bytes: 100_000, isFull: false, finished: 1)
        bad.errors = 3
        limits.note(bad, each: ["a": good])
        #expect(limits.limit == 8 && limits.byHost["a"] == 16)
        #expect(limits.isFull("a", inFlight: 8, recordings: 7))
        #expect(!limits.isFull("a", inFlight: 8, recordings: 8))
        #expect(limits.isFull("a", inFlight: 16, recordings: 8))
    }

    @Test func `a new network starts from the beginning`() {
        var limits = ConcurrencyLimits(.probe, start: 20)
        limits.restart(at: nil)
        #expect(limits.limit == 4)
        limits.restart(at: 9)
        #expect(limits.limit == 9)
    }

    @Test func `limits of networks are remembered, the latest first`() {
        var memory = NetworkMemory()
        memory.note("home", transfers: 12, goodput: 9_000_000)
        memory.note("train", transfers: 3, goodput: 100_000)
        memory.note("home", transfers: 14, goodput: 9_500_000)
        let impossible = NetworkMemory.Network(name: "bad", transfers: 99, goodput: 1)
        let read = NetworkMemory(memory.networks + [impossible])
        #expect(read == memory)
        #expect(read.networks.map(\.name) == ["home", "train"])
        #expect(read["home"]?.transfers == 14)
    }
}

@Suite struct SurroundingsTests {
    private static func made(_ change: (inout MachineConditions) -> Void) -> MachineConditions {
        var made = MachineConditions()
        change(&made)
        return made
    }

    @Test(arguments: [
        (made { _ in }, 32), (made { $0.cpuPressure = 95 }, 6), (made { $0.cpuPressure = 61 }, 12),
        (made { $0.memoryPressure = 12 }, 8), (made { $0.memoryPressure = 50 }, 2),
        (made { $0.isOnBattery = true }, 16), (made { $0.isMetered = true }, 4),
        (
            made {
                $0.isOnBattery = true
                $0.charge = 10
            }, 4
        ),
    ])
    func `load, battery and metered networks lower the ceiling`(
        conditions: MachineConditions, ceiling: Int
    ) {
        #expect(conditions.ceiling() == ceiling)
    }

    @Test func `a slow link lowers the ceiling`() {
        #expect(MachineConditions().ceiling(goodput: 90_000) == 6)
    }

    @Test func `pressure is parsed from its first line`() {
        let text = "some avg10=12.50 avg60=3.00 avg300=1.00 total=5\nfull avg10=1.00 avg60=0.00"
        #expect(MachineConditions.pressure(text) == 12.5)
        #expect(MachineConditions.pressure("") == nil)
    }
}
