import Numbers

/// What the power supplies of a machine say together (power_supply of sysfs).
struct PowerSupplies {
    private var hasSupply = false
    private var empties = false
    /// The charge of the emptiest battery, in percent; nil without a battery.
    private(set) var charge: Int?

    /// True if a battery is discharging and no supply is online.
    var isOnBattery: Bool { empties && !hasSupply }

    /// Notes a supply.
    ///
    /// - Parameter attribute: returns the text of an attribute, with its line break; empty if the
    ///   supply has none of this name.
    mutating func note(_ attribute: (String) -> String) {
        switch attribute("type") {
        // One with the scope of a device is that of a mouse or a headset.
        case "Battery\n" where attribute("scope") != "Device\n":
            empties = empties || attribute("status") == "Discharging\n"
            let digits = attribute("capacity").prefix { $0 != "\n" }
            let charge = ExternalNumber.integer(digits, in: 0...100)
            self.charge = [self.charge, charge].compactMap { $0 }.min()
        case "Mains\n", "USB\n":
            hasSupply = hasSupply || attribute("online") == "1\n"
        default: break
        }
    }
}
