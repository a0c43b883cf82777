/// The proxies that a comparison sets the daemon beside, and how each is started.
import CLinux
import Glibc
import Posix

/// One kind of proxy.
struct Peer {
    /// What a proxy can do at all; it is left out where it cannot.
    enum Ability {
        /// Keeps what it stored over a restart.
        case disk
        /// Answers ranges from what it stored.
        case ranges
    }

    let name: String
    /// The program, looked for in PATH and where administrators' programs are.
    let program: String
    /// Its configuration below Fixtures/bench, and where that goes in its folder.
    var files: [(template: String, place: String)] = []
    /// Words of the configuration beside the common ones.
    var words: [String: String] = [:]
    /// Its arguments; the same words are filled in.
    var arguments: [String] = []
    /// Ends it; most proxies take SIGTERM for that.
    var signal = SIGTERM
    var abilities: Set<Ability> = [.disk, .ranges]

    /// All of them, in the order of the table.
    static let all: [Peer] = [
        nginx("nginx", extra: ""),
        nginx(
            "nginx-slice",
            extra: "slice 1m; proxy_cache_key $uri$is_args$args$slice_range; "
                + "proxy_set_header Range $slice_range;"),
        Peer(
            name: "varnish", program: "varnishd", files: [("varnish.vcl", "all.vcl")],
            arguments: [
                "-F", "-j", "none", "-a", "127.0.0.1:@port@", "-f", "@folder@/all.vcl", "-n",
                "@folder@/state", "-s", "malloc,4G",
            ], abilities: [.ranges]),
        Peer(
            name: "trafficserver", program: "traffic_server",
            files: ["records.config", "remap.config", "storage.config"].map {
                ("trafficserver/\($0)", "etc/\($0)")
            }, arguments: ["--run-root=@folder@"]),
        Peer(
            name: "squid", program: "squid", files: [("squid.conf", "squid.conf")],
            arguments: ["-N", "-f", "@folder@/squid.conf"]),
        Peer(
            name: "haproxy", program: "haproxy", files: [("haproxy.cfg", "all.cfg")],
            arguments: ["-db", "-f", "@folder@/all.cfg"], abilities: []),
    ]

    private static func nginx(_ name: String, extra: String) -> Peer {
        Peer(
            name: name, program: "nginx", files: [("nginx.conf", "nginx.conf")],
            words: ["extra": extra],
            arguments: ["-c", "@folder@/nginx.conf", "-p", "@folder@"], signal: SIGQUIT)
    }

    /// Where the program is; nil where it is not installed.
    var path: String? {
        let folders = String(cString: getenv("PATH") ?? strdup("")).split(separator: ":")
        return (folders.map(String.init) + ["/usr/sbin", "/usr/local/sbin"])
            .map { "\($0)/\(program)" }
            .first { access($0, X_OK) == 0 }
    }
}

/// A proxy under test: the daemon, or a peer; with its own empty folder and a free port.
final class ProxyUnderTest {
    let name: String
    let address: SocketAddress
    private let peer: Peer?
    private let folder: String
    private let origin: SocketAddress
    private let bin: String
    private var program: RunningProgram?

    /// Starts a peer, or the daemon without one.
    init(_ peer: Peer?, folder: String, origin: SocketAddress) throws {
        self.peer = peer
        self.origin = origin
        name = peer?.name ?? "sluice"
        bin = try BenchFolder.ownFolder()
        address = SocketAddress(loopbackPort: try freePort())
        self.folder = "\(folder)/\(name)-\(address.port)"
        try makeFolder(self.folder)
        // Peers that give up their rights have to get in.
        for path in [folder, self.folder] { chmod(path, 0o777) }
        try start()
    }

    deinit { stop() }

    /// The path by which it fetches a path of the origin.
    func path(_ path: String) -> String { peer == nil ? "/http://\(origin)\(path)" : path }

    /// Starts it, on what is in its folder; blocks until it answers.
    func start() throws {
        var words = [
            "port": "\(address.port)", "folder": folder, "origin": "\(origin)",
            "originhost": origin.host, "originport": "\(origin.port)",
        ]
        words.merge(peer?.words ?? [:]) { $1 }
        guard let peer else {
            let daemon = [
                "\(bin)/sluice", "serve", "--port", "\(address.port)", "--cache-dir",
                "\(folder)/cache", "--allow-host", "127.0.0.1", "--log-level", "error",
                "--min-free", "0",
            ]
            program = try RunningProgram(quiet: daemon, in: folder, to: address)
            return try waitUntilReady()
        }
        try PeerFiles.write(peer, to: folder, words)
        guard let path = peer.path else { throw BenchError("\(peer.program) is not installed") }
        let arguments = [path] + peer.arguments.map { PeerFiles.fill($0, words) }
        program = try RunningProgram(quiet: arguments, in: folder, to: address)
        try waitUntilReady()
    }

    /// Ends it in good order; blocks until it has.
    func stop() {
        program?.end(peer?.signal ?? SIGTERM)
        program = nil
    }

    private func waitUntilReady() throws {
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while Monotonic.now() < deadline {
            let answer = try? TimedRequest.one(
                TimedRequest(path("/bytes/16/ready.ts?cc=no-store")), to: address)
            if answer?.isWhole == true { return }
            usleep(2_000)
        }
        throw BenchError("\(name) does not answer: \(readText("\(folder)/output").suffix(400))")
    }

    /// Processor seconds of all its processes.
    var processorSeconds: Double {
        processes.reduce(0) { sum, pid in
            // The clock of another process, threads that ended included (clock_getcpuclockid(3)).
            var time = timespec()
            guard clock_gettime(clockid_t(~pid << 3 | 2), &time) == 0 else { return sum }
            return sum + Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
    }

    /// Its share of memory in bytes, over all its processes (smaps_rollup, Pss).
    var memoryBytes: Double {
        processes.reduce(0) { sum, pid in
            let lines = readText("/proc/\(pid)/smaps_rollup").split(separator: "\n")
            let line = lines.first { $0.hasPrefix("Pss:") } ?? ""
            return sum + (Double(line.filter(\.isNumber)) ?? 0) * 1024
        }
    }

    /// Its process and all that came from it.
    private var processes: [pid_t] {
        guard let program else { return [] }
        var parents: [pid_t: pid_t] = [:]
        for entry in (try? listFolder("/proc")) ?? [] {
            guard let pid = pid_t(entry.name) else { continue }
            // The name before the parent's number may hold anything but is in brackets.
            let text = readText("/proc/\(pid)/stat")
            guard let end = text.lastIndex(of: ")") else { continue }
            parents[pid] = pid_t(text[end...].split(separator: " ").dropFirst(2).first ?? "") ?? 0
        }
        var found = [program.pid]
        var next = 0
        while next < found.count {
            let parent = found[next]
            found += parents.filter { $0.value == parent }.keys
            next += 1
        }
        return found
    }
}

/// A port that nobody listens on now.
func freePort() throws -> UInt16 {
    let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    guard number >= 0 else { throw SystemError("socket", code: errno) }
    let owned = OwnedDescriptor(taking: number)
    let any = SocketAddress(loopbackPort: 0)
    guard any.withRaw({ bind(owned.number, $0, $1) }) == 0 else {
        throw SystemError("bind", code: errno)
    }
    return try localAddress(of: owned.number).port
}

extension SocketAddress {
    /// A port of 127.0.0.1.
    init(loopbackPort port: UInt16) {
        guard let address = SocketAddress(host: "127.0.0.1", port: port) else {
            preconditionFailure("127.0.0.1 is an address")
        }
        self = address
    }
}
