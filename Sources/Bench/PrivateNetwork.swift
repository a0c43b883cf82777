import CLinux
import Glibc
import Posix

/// A network and a file system of the bench's own, where the one who runs it may have them.
///
/// In a network namespace the bench sets congestion control itself: BBR, which many machines have
/// switched on, paces loopback to a third of its rate. It also leaves the machine's ports alone. The
/// stores lie on a fresh ext4, since the age of a file system tells in how long a file takes to make.
struct PrivateNetwork {
    private static let mark = "SLUICE_BENCH_APART"

    /// Starts this program again in namespaces of its own, unless it is in them already.
    ///
    /// Returns when it may not have them; otherwise the program is replaced.
    static func enter() {
        guard getenv(mark) == nil, geteuid() == 0, let unshare = findProgram("unshare") else {
            return
        }
        // With processes of their own too, whatever ends this program ends all that it started.
        let apart = [
            unshare, "--net", "--mount", "--propagation", "private", "--pid", "--fork",
            "--kill-child", "--mount-proc", "--",
        ]
        guard let folder = try? BenchFolder(), let truth = findProgram("true"),
            (try? RunningProgram.runToEnd(apart + [truth], in: folder.path)) == 0
        else { return }
        BenchFolder.remove(folder.path)
        setenv(mark, "1", 1)
        var words: [UnsafeMutablePointer<CChar>?] = (apart + CommandLine.arguments).map {
            (word: String) in strdup(word)
        }
        guard let own = try? BenchFolder.ownProgram() else { return }
        words[apart.count] = strdup(own)
        words.append(nil)
        execv(unshare, words)
    }

    /// The namespace that this program was started in; nil when it has none of its own.
    init?() {
        guard getenv(Self.mark) != nil else { return nil }
        // The first process of a namespace ignores what it does not handle (pid_namespaces(7)).
        for number in [SIGINT, SIGTERM, SIGHUP] { signal(number) { _ in _exit(130) } }
        setFlags()
        try? Self.set("net/ipv4/tcp_congestion_control", "reno")
        try? Self.set("net/ipv4/ip_local_port_range", "12000 65000")
        try? Self.set("net/ipv4/tcp_tw_reuse", "1")
        try? Self.set("net/core/somaxconn", "4096")
    }

    private static func set(_ name: String, _ value: String) throws {
        let file = try openFile("/proc/sys/\(name)", flags: O_WRONLY)
        try Array(value.utf8).withUnsafeBytes { try writeAll($0, to: file.number, at: 0) }
    }

    /// Switches loopback on (netdevice(7)).
    private func setFlags() {
        change(SIOCSIFFLAGS) { $0.ifr_ifru.ifru_flags = Int16(IFF_UP | IFF_RUNNING) }
    }

    /// Sets the largest packet of loopback in bytes.
    func setPacketSize(_ bytes: Int) {
        change(SIOCSIFMTU) { $0.ifr_ifru.ifru_mtu = CInt(bytes) }
    }

    private func change(_ request: CInt, _ fill: (inout ifreq) -> Void) {
        let number = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        guard number >= 0 else { return }
        defer { close(number) }
        var wanted = ifreq()
        withUnsafeMutableBytes(of: &wanted.ifr_ifrn.ifrn_name) { $0.copyBytes(from: "lo".utf8) }
        fill(&wanted)
        _ = ioctl(number, UInt(request), &wanted)
    }

    /// Puts a fresh ext4 of at most 40 GB, in a file, under a folder; false when that cannot be.
    func mountFileSystem(on folder: BenchFolder) -> Bool {
        let image = "\(folder.path).image"
        defer { unlink(image) }
        guard let make = findProgram("mkfs.ext4"), let mount = findProgram("mount"),
            let truncate = findProgram("truncate"), access("/dev/loop-control", W_OK) == 0
        else { return false }
        let steps = [
            [truncate, "--size", "40G", image],
            [make, "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", image],
            [mount, "-o", "loop,noatime", image, folder.path],
        ]
        return steps.allSatisfy {
            (try? RunningProgram.runToEnd($0, in: "/tmp", quiet: true)) == 0
        }
    }
}
