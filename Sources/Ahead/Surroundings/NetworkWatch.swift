// Observes the machine for the controllers of concurrency: its network, its load, its battery.
import DurableState
import Glibc
import Logging
import Lookahead
import Origin
import Posix
import Reactor

/// The observer of network, load and battery; confined to the downloads' thread, since it reads
/// files.
///
/// The kernel reports network changes (rtnetlink(7)); if that is unavailable, a change is noticed
/// at the next look-ahead fetch.
final class NetworkWatch: ReadinessHandler {
    private let flights: Flights
    private let report: ConcurrencyReport
    private let log: Logger
    private let state: StateDatabase
    private var memory: NetworkMemory
    private var network = NetworkName(routes: "")
    private var socket: OwnedDescriptor?
    private var willLook = false
    private var cpu: (seconds: Double, at: Monotonic)?

    /// Reads the state for the first time, and restores the remembered limit of this network.
    init(
        _ flights: Flights, _ report: ConcurrencyReport, log: Logger, state: StateDatabase,
        loop: EventLoop
    ) {
        self.flights = flights
        self.report = report
        self.log = log
        self.state = state
        let kept = state.records(NetworkRecord.self).sorted { $0.noted > $1.noted }
        memory = NetworkMemory(
            kept.map { .init(name: $0.name, transfers: $0.transfers, goodput: $0.goodput) })
        network = Self.read()
        applyNetwork()
        lookAround()
        listen(on: loop)
    }

    // MARK: The network

    private static func read() -> NetworkName {
        // The link /proc/net is missing where /proc shows processes only (ProcSubset=pid).
        NetworkName(
            routes: text(of: "/proc/self/net/route"),
            routes6: text(of: "/proc/self/net/ipv6_route"),
            neighbours: text(of: "/proc/self/net/arp"))
    }

    private func applyNetwork() {
        let known = memory[network.text]
        flights.follow(network: known)
    }

    private func listen(on loop: EventLoop) {
        let number = Glibc.socket(
            AF_NETLINK,
            CInt(SOCK_RAW.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
                | CInt(SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { return }
        let made = OwnedDescriptor(taking: number)
        // struct sockaddr_nl of linux/netlink.h: family, padding, port, groups. The groups are
        // links, addresses and routes of both families (RTMGRP_).
        let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
        let address: [UInt32] = [UInt32(AF_NETLINK).littleEndian, 0, groups]
        let status = address.withUnsafeBytes { raw in
            raw.withMemoryRebound(to: sockaddr.self) { bind(number, $0.baseAddress, 12) }
        }
        guard status == 0, (try? loop.watch(number, for: .readable, handler: self)) != nil else {
            return
        }
        socket = consume made
    }

    package func ready(_ readiness: Readiness, on loop: EventLoop) {
        guard let number = socket?.number else { return }
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while recv(number, &buffer, buffer.count, 0) > 0 {}
        // One change causes many messages.
        guard !willLook else { return }
        willLook = true
        loop.schedule(after: .seconds(1)) { [weak self] _ in
            self?.willLook = false
            self?.look()
            // Origins that were down may be reachable through the new network.
            self?.flights.hurryProbes()
        }
    }

    /// Checks for another network, which has its own limit and is measured anew.
    func look() {
        let now = Self.read()
        guard now.interface != network.interface || now.text != network.text else { return }
        remember()
        network = now
        log.notice("network changed", metadata: ["network": "\(now.text)"])
        applyNetwork()
        lookAround()
    }

    /// Saves the limit of this network, once it has been measured.
    package func remember() {
        let figures = report.now
        guard figures.plan == .probe, figures.goodput > 0 else { return }
        let before = memory.networks
        memory.note(network.text, transfers: figures.limit, goodput: figures.goodput)
        guard memory.networks != before, let noted = memory[network.text] else { return }

        state.put(
            NetworkRecord(
                name: noted.name, transfers: noted.transfers, goodput: noted.goodput,
                noted: max(0, WallTime.now().seconds)))
        for former in before where memory[former.name] == nil {
            state.remove(NetworkRecord.self, key: [.text(former.name)])
        }
    }

    // MARK: The machine

    /// Reports load, battery and a mobile network to the controllers; reads a few small files.
    func lookAround() {
        var now = MachineConditions()
        now.cpuPressure = MachineConditions.pressure(Self.text(of: "/proc/pressure/cpu"))
        now.memoryPressure = MachineConditions.pressure(Self.text(of: "/proc/pressure/memory"))
        now.availableMemory = MachineConditions.availableMemory(Self.text(of: "/proc/meminfo"))
        now.cpuUse = cpuUse()
        readBattery(&now)
        if let interface = network.interface {
            now.isMetered = NetworkName.isMobile(
                interface, device: Self.text(of: "/sys/class/net/\(interface)/uevent"))
        }
        flights.follow(now)
    }

    /// Returns the average number of processors that this process has kept busy since the last call
    /// (getrusage(2)).
    private func cpuUse() -> Double? {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return nil }
        let seconds =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
        let now = Monotonic.now()
        defer { cpu = (seconds, now) }
        guard let cpu else { return nil }
        let elapsed = (now - cpu.at).inSeconds
        return elapsed > 0 ? max(0, seconds - cpu.seconds) / elapsed : nil
    }

    private func readBattery(_ now: inout MachineConditions) {
        let folder = "/sys/class/power_supply"
        var supplies = PowerSupplies()
        for name in ((try? listFolder(folder)) ?? []).map(\.name) {
            supplies.note { Self.text(of: "\(folder)/\(name)/\($0)") }
        }
        (now.charge, now.isOnBattery) = (supplies.charge, supplies.isOnBattery)
    }

    /// Reads a small kernel file, whose size the kernel does not report; empty if it does not
    /// exist.
    private static func text(of path: String) -> String {
        guard let file = try? openFile(path, flags: O_RDONLY),
            let bytes = try? readBytes(from: file.number, at: 0, count: 32 << 10)
        else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }
}
