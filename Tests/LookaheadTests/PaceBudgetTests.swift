import Testing

@testable import Lookahead

/// How many bytes of a paced body may be sent at which time.
@Suite struct `A pace` {
    @Test func `releases the first step immediately`() {
        let budget = PaceBudget(rate: 1_000_000, start: 5)
        #expect(budget.allowance(at: 5) == 20_000)
        #expect(budget.wait(at: 5) == 0)
    }

    @Test func `delays early bytes and returns the delay`() {
        var budget = PaceBudget(rate: 1_000_000, start: 5)
        budget.take(20_000)
        #expect(budget.allowance(at: 5.01) == 0)
        #expect(abs(budget.wait(at: 5.01) - 0.01) < 1e-9)
        #expect(budget.allowance(at: 5.021) >= 20_000)
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
        #expect(budget.allowance(at: 1) == 0)
        #expect(budget.allowance(at: 1.7) >= 16_384)
    }

    @Test func `never falls below one byte per second`() {
        let budget = PaceBudget(rate: -3, start: 0)
        #expect(budget.wait(at: 10) == 0)
    }
}
