import CLinux
import Glibc
import Posix

/// A proxy under test, the daemon or a peer, with its own empty folder and a free port.
final class ProxyUnderTest {
    let name: String
    let address: SocketAddress
    let peer: Peer?
    private let folder: String
    private let origin: BenchOrigin
    private var program: RunningProgram?

    /// Whether it keeps its stored objects across a restart.
    var keepsOverRestart: Bool { peer?.abilities.contains(.disk) ?? true }

    /// Starts a peer, or the daemon if `peer` is nil.
    init(_ peer: Peer?, folder: String, origin: BenchOrigin) throws {
        self.peer = peer
        self.origin = origin
        name = peer?.name ?? Comparison.own
        address = SocketAddress(loopbackPort: try freePort())
        self.folder = "\(folder)/\(name)-\(address.port)"
        try makeFolder(self.folder)
        // Peers that drop privileges need access.
        for path in [folder, self.folder] { chmod(path, 0o777) }
        try start(untilAnswered: path("/bytes/16/ready.ts?cc=no-store"))
    }

    deinit {
        stop()
        BenchFolder.remove(folder)
    }

    /// The proxy's path for a path of the origin.
    func path(_ path: String) -> String {
        peer == nil ? "/\(origin.scheme)://\(origin.address)\(path)" : path
    }

    /// Starts it on the content of its folder; blocks until it answers a path with 200.
    func start(untilAnswered path: String) throws {
        guard let peer else {
            let bin = try BenchFolder.ownFolder()
            var daemon = [
                "\(bin)/sluice", "serve", "--port", "\(address.port)", "--cache-dir",
                "\(folder)/cache", "--allow-host", "127.0.0.1", "--log-level", "error",
                "--min-free", "0",
            ]
            if let certificate = origin.certificate { daemon += ["--ca-file", certificate] }
            program = try RunningProgram(quiet: daemon, in: folder, to: address)
            return try wait(for: path)
        }
        var words = ["port": "\(address.port)", "folder": folder]
        words.merge(origin.words) { $1 }
        words.merge(peer.words) { $1 }
        try PeerFiles.write(peer, to: folder, words)
        guard let program = peer.path else { throw BenchError("\(peer.program) is not installed") }
        let arguments = [program] + peer.arguments.map { PeerFiles.fill($0, words) }
        self.program = try RunningProgram(quiet: arguments, in: folder, to: address)
        try wait(for: path)
    }

    /// Stops it with its signal; blocks until it has ended.
    func stop() {
        program?.end(peer?.signal ?? SIGTERM)
        program = nil
    }

    private func wait(for path: String) throws {
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while Monotonic.now() < deadline {
            let answer = try? TimedRequest.one(TimedRequest(path), to: address)
            if answer?.isWhole == true { return }
            usleep(1_000)
        }
        throw BenchError("\(name) does not answer: \(readText("\(folder)/output").suffix(400))")
    }

    /// Processor seconds of all its processes.
    var processorSeconds: Double {
        processes.reduce(0) { $0 + Bench.processorSeconds(of: $1) }
    }

    /// The proportional share of memory of all its processes, in bytes (smaps_rollup, Pss).
    var memoryBytes: Double {
        processes.reduce(0) { $0 + Bench.memoryBytes(of: $1, "smaps_rollup", "Pss:") }
    }

    /// Its process and all descendants.
    private var processes: [pid_t] {
        guard let program else { return [] }
        var parents: [pid_t: pid_t] = [:]
        for entry in (try? listFolder("/proc")) ?? [] {
            guard let pid = pid_t(entry.name) else { continue }
            // The name before the parent's id may contain anything, but is in parentheses.
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

/// Returns a port of 127.0.0.1 that is free now, for a program that cannot take one by itself.
///
/// It is below the range that the kernel takes ports for clients from (ip(7), ip_local_port_range):
/// no connection that is opened before the program listens can take it.
func freePort() throws -> UInt16 {
    var failure = SystemError("bind", code: EADDRINUSE)
    for _ in 0..<100 {
        let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { throw SystemError("socket", code: errno) }
        let owned = OwnedDescriptor(taking: number)
        let address = SocketAddress(loopbackPort: .random(in: 10_000..<32_000))
        let isBound = address.withRaw {
            bind(owned.number, $0.assumingMemoryBound(to: sockaddr.self), $1) == 0
        }
        if isBound { return address.port }
        failure = SystemError("bind", code: errno)
    }
    throw failure
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
