import Testing

@testable import Lookahead

/// How many bytes of a paced body may be sent at which time.
@Suite struct `A pace` {
    @Test func `releases the first step immediately`() {
        var budget = PaceBudget(rate: 1_000_000, start: 5)
        let first = budget.allowance(at: 5)
        #expect(first == 20_000)
        #expect(budget.wait(at: 5) == 0)
    }

    @Test func `delays early bytes and returns the delay`() {
        var budget = PaceBudget(rate: 1_000_000, start: 5)
        budget.take(20_000)
        let early = budget.allowance(at: 5.01)
        #expect(early == 0)
        #expect(abs(budget.wait(at: 5.01) - 0.01) < 1e-9)
        let due = budget.allowance(at: 5.021)
        #expect(due >= 20_000)
    }

    @Test(arguments: [10_000.0, 1e6, 50e6, 1e9])
    func `reaches its rate over a body`(rate: Double) {
        var budget = PaceBudget(rate: rate, start: 0)
        var now = 0.0
        var sent = 0
        while now < 10 {
            let allowed = budget.allowance(at: now)
            budget.take(allowed)
            sent += allowed
            now += max(0.001, budget.wait(at: now))
        }
        #expect(Double(sent) <= rate * 10 + max(16_384, rate * 0.04))
        #expect(Double(sent) >= rate * 9.5 - 16_384)
    }

    @Test func `releases steps that are worth a system call`() {
        var budget = PaceBudget(rate: 10_000, start: 0)
        budget.take(16_384)
        let early = budget.allowance(at: 1)
        #expect(early == 0)
        let due = budget.allowance(at: 1.7)
        #expect(due >= 16_384)
    }

    @Test func `does not pay a pause back in one burst`() {
        var budget = PaceBudget(rate: 1_000_000, start: 0)
        var now = 0.0
        func send(until end: Double) -> Int {
            var sent = 0
            while now < end {
                let allowed = budget.allowance(at: now)
                budget.take(allowed)
                sent += allowed
                now += max(0.001, budget.wait(at: now))
            }
            return sent
        }
        let before = send(until: 2)
        #expect(before >= 1_950_000)
        now = 32
        let burst = budget.allowance(at: now)
        #expect((20_000...170_000).contains(burst))
        let after = send(until: 33)
        #expect((1_000_000...1_200_000).contains(after))
    }

    @Test func `never falls below one byte per second`() {
        let budget = PaceBudget(rate: -3, start: 0)
        #expect(budget.wait(at: 10) == 0)
    }
}
