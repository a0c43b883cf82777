import Numbers

/// The state of all power supplies of a machine (power_supply of sysfs).
struct PowerSupplies {
    private var hasSupply = false
    private var isDischarging = false
    /// The charge of the emptiest battery, in percent; nil without a battery.
    private(set) var charge: Int?

    /// True if a battery is discharging and no supply is online.
    var isOnBattery: Bool { isDischarging && !hasSupply }

    /// Notes a supply.
    ///
    /// - Parameter attribute: returns the text of an attribute, with its line break; empty if the
    ///   supply has none of this name.
    mutating func note(_ attribute: (String) -> String) {
        switch attribute("type") {
        // A battery with the scope Device belongs to a mouse or a headset.
        case "Battery\n" where attribute("scope") != "Device\n":
            isDischarging = isDischarging || attribute("status") == "Discharging\n"
            let digits = attribute("capacity").prefix { $0 != "\n" }
            let charge = ExternalNumber.integer(digits, in: 0...100)
            self.charge = [self.charge, charge].compactMap { $0 }.min()
        case "Mains\n", "USB\n":
            hasSupply = hasSupply || attribute("online") == "1\n"
        default: break
        }
    }
}
