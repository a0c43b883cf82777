import Lookahead
import Testing

/// Distinguishing networks by the kernel's tables.
@Suite struct NetworkNameTests {
    private static let routes = """
        Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
        wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
        eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
        eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
        """
    private static let neighbours = """
        IP address       HW type     Flags       HW address            Mask     Device
        192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0
        """

    @Test func `the route with the lowest metric counts, with its gateway's hardware address`() {
        let name = NetworkName(routes: Self.routes, neighbours: Self.neighbours)
        #expect(name.interface == "eth0")
        #expect(name.text == "eth0-010200C0-02:fc:00:00:00:05")
    }

    @Test func `two networks with equal addresses differ by hardware addresses`() {
        let other = Self.neighbours.replacing("02:fc", with: "02:fd")
        let names = [Self.neighbours, other].map {
            NetworkName(routes: Self.routes, neighbours: $0)
        }
        #expect(names[0] != names[1])
    }

    @Test func `without a route there is no network`() {
        let name = NetworkName(routes: "")
        #expect(name.interface == nil)
        #expect(name.text == "none")
    }

    @Test func `a default route of IPv6 alone suffices`() {
        let zeros = String(repeating: "0", count: 32)
        let gateway = "fe80000000000000000000000000" + "0001"
        let line = "\(zeros) 00 \(zeros) 00 \(gateway) 00000400 1 0 00000003 eth1"
        let name = NetworkName(routes: "", routes6: line)
        #expect(name.interface == "eth1")
        #expect(name.text == "eth1-\(gateway)")
    }

    @Test(arguments: [("wwan0", "", true), ("usb0", "DEVTYPE=wwan\n", true), ("eth0", "", false)])
    func `mobile networks are recognized by name or device`(
        name: String, device: String, isSo: Bool
    ) {
        #expect(NetworkName.isMobile(name, device: device) == isSo)
    }
}
