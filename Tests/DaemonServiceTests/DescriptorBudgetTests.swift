import Testing

@testable import DaemonService

/// How the daemon divides the descriptors that the system grants.
struct DescriptorBudgetTests {
    private let demand = DescriptorBudget.Demand(
        loops: 4, addresses: 1, transfers: 48, connections: 20_000, openObjects: 512)

    @Test(arguments: [0, 1, 24, 64, 128])
    func `a limit too low for a daemon is an error that names a sufficient one`(
        _ limit: Int
    ) throws {
        let fault = #expect(throws: DescriptorBudget.TooLow.self) {
            try DescriptorBudget(limit: limit, for: demand)
        }
        let least = try #require(fault).least
        let budget = try DescriptorBudget(limit: least, for: demand)
        #expect(fault?.limit == limit && least > 128)
        #expect(budget.connections == DescriptorBudget.leastConnections)
    }

    @Test
    func `what is at its least already is not to be lowered`() {
        func demand(_ loops: Int, _ transfers: Int) -> DescriptorBudget.Demand {
            .init(
                loops: loops, addresses: 1, transfers: transfers, connections: 20_000,
                openObjects: 512)
        }
        #expect(demand(1, 2).wayOut.isEmpty)
        #expect(demand(2, 2).wayOut.contains("--loops"))
        #expect(demand(1, 3).wayOut.contains("--slots"))
    }

    @Test
    func `a high limit changes no requested value`() throws {
        for limit in [65_536, 1 << 20, Int.max] {
            let budget = try DescriptorBudget(limit: limit, for: demand)
            #expect(budget.connections == 20_000 && budget.openObjects == 512)
        }
    }

    /// Sockets and files of players, files kept open, and sockets and files of transfers.
    @Test(arguments: Array(stride(from: 240, through: 60_000, by: 997)))
    func `all descriptors that may be open at once are within the limit`(_ limit: Int) throws {
        let budget = try DescriptorBudget(limit: limit, for: demand)
        let files = max(budget.connections, budget.openObjects)
        #expect(budget.connections + files + budget.originConnections + 48 + 64 <= limit)
        #expect(budget.connections >= DescriptorBudget.leastConnections)
    }
}
