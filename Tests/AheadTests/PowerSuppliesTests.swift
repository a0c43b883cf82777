import Testing

@testable import Ahead

/// When a machine runs on its battery.
@Suite struct PowerSuppliesTests {
    /// Notes supplies with these attributes, in their order.
    private func supplies(_ all: [String: String]...) -> PowerSupplies {
        var supplies = PowerSupplies()
        for attributes in all { supplies.note { attributes[$0].map { $0 + "\n" } ?? "" } }
        return supplies
    }

    private let battery = ["type": "Battery", "status": "Discharging", "capacity": "17"]
    private let mains = ["type": "Mains", "online": "1"]

    @Test func `a battery that discharges counts unless a supply is online`() {
        #expect(supplies(battery).isOnBattery && supplies(battery).charge == 17)
        #expect(!supplies(battery, mains).isOnBattery && !supplies(mains, battery).isOnBattery)
        let pulled = ["type": "USB", "online": "0"]
        #expect(supplies(pulled, battery).isOnBattery)
        let full = ["type": "Battery", "status": "Full", "capacity": "100"]
        #expect(!supplies(full).isOnBattery && supplies(full).charge == 100)
    }

    @Test func `the emptiest of several batteries counts, and that of a mouse does not`() {
        let other = ["type": "Battery", "status": "Charging", "capacity": "80", "scope": "System"]
        let mouse = battery.merging(["scope": "Device", "capacity": "3"]) { $1 }
        #expect(supplies(other, battery).charge == 17 && supplies(battery, other).charge == 17)
        #expect(!supplies(mouse).isOnBattery && supplies(mouse).charge == nil)
        #expect(supplies(mouse, other).charge == 80)
    }

    @Test(arguments: ["", "-1", "101", "x", "99999999999999999999"])
    func `a capacity that no battery has is not known`(_ text: String) {
        let odd = ["type": "Battery", "status": "Discharging", "capacity": text]
        #expect(supplies(odd).charge == nil && supplies(odd).isOnBattery)
        #expect(supplies(battery, odd).charge == 17)
    }

    @Test func `a machine without supplies is not on battery`() {
        #expect(!supplies().isOnBattery && supplies().charge == nil)
        #expect(!supplies([:]).isOnBattery)
    }
}
