import Glibc
import Posix

/// The machine of a run, and its other load.
enum Machine {
    /// The facts that figures depend on, one per line.
    static func facts(_ peers: [Peer], in folder: BenchFolder, _ apart: [String]) -> [String] {
        let processor = readText("/proc/cpuinfo").split(separator: "\n")
            .first { $0.hasPrefix("model name") }
            .map { String($0.drop { $0 != ":" }.dropFirst(2)) }
        let load = readText("/proc/loadavg").split(separator: " ").prefix(3)
        let memory = sysconf(CInt(_SC_PHYS_PAGES)) / 256
        let control = word("/proc/sys/net/ipv4/tcp_congestion_control")
        return [
            "Linux \(word("/proc/sys/kernel/osrelease")), "
                + "\(sysconf(CInt(_SC_NPROCESSORS_ONLN))) processors (\(processor ?? "unknown")), "
                + "\(memory) MB of memory.",
            "Congestion control \(control), loopback packets of "
                + "\(word("/sys/class/net/lo/mtu")) bytes; \(apart.joined(separator: ", ")).",
            "Load at the start: \(load.joined(separator: " ")).",
        ] + versions(peers, in: folder)
    }

    private static func word(_ path: String) -> String {
        let text = readText(path).prefix { $0 != "\n" }
        return text.isEmpty ? "unknown" : String(text)
    }

    private static func versions(_ peers: [Peer], in folder: BenchFolder) -> [String] {
        let found = peers.filter { $0.name != "nginx-slice" }.compactMap { peer -> String? in
            guard let path = peer.path else { return nil }
            let place = "\(folder.path)/version-\(peer.name)"
            guard (try? makeFolder(place)) != nil else { return nil }
            _ = try? RunningProgram.runToEnd([path, peer.version], in: place)
            let line = readText("\(place)/output").prefix { $0 != "\n" }
            let version = line.drop { !$0.isNumber }.prefix { $0.isNumber || $0 == "." }
            return "\(peer.name) \(version)"
        }
        return found.isEmpty ? [] : ["Peers: \(found.joined(separator: ", "))."]
    }
}

/// The share of the processors that other processes used during measurements.
struct Calm {
    /// One reading of the clocks.
    struct Sample {
        let time = Monotonic.now()
        /// Processor seconds of all processes (proc(5), stat).
        let all = Self.busySeconds()
        /// Processor seconds of the measured program, the origin and this program.
        let ours: Double

        init(processes: [Double]) {
            ours = processes.reduce(0, +) + Bench.processorSeconds(of: getpid())
        }

        private static func busySeconds() -> Double {
            let line = readText("/proc/stat").prefix { $0 != "\n" }
            let ticks = line.split(separator: " ").dropFirst().compactMap { Double($0) }
            guard ticks.count >= 8 else { return 0 }
            // user, nice, system, irq, softirq and steal; not idle or iowait.
            let busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]
            return busy / Double(max(1, sysconf(CInt(_SC_CLK_TCK))))
        }
    }

    private var others: [Double] = []

    mutating func add(_ before: Sample, _ after: Sample) {
        let seconds = (after.time - before.time).inSeconds
        guard seconds > 0.05 else { return }
        others.append(max(0, (after.all - before.all) - (after.ours - before.ours)) / seconds)
    }

    /// A statement on the other load of the run; nil if nothing was watched.
    var words: String? {
        guard !others.isEmpty else { return nil }
        let middle = median(others)
        let text =
            "Meanwhile others took \(NumberText.short(middle)) processors, in the worst tenth of "
            + "the loads more than \(NumberText.short(quantile(others, 0.9)))"
        return middle < 0.2 ? "\(text)." : "\(text): rates of this run say little."
    }
}
