// The origin of the crash rig, whose objects change, and its daemon, which is killed.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization

/// How long and how hard the rig works, from the environment, which `Fixtures/tools/crash` sets.
enum CrashSettings {
    private static let killsOfARound = 50
    private static let secondsOfARound = 20

    /// `SLUICE_CRASH_KILLS`: the number of kills; 300 unless a time is given.
    private static let kills = number("SLUICE_CRASH_KILLS")
    /// `SLUICE_CRASH_SECONDS`: the approximate duration, instead of or beside a number of kills.
    private static let seconds = number("SLUICE_CRASH_SECONDS")
    /// `SLUICE_CRASH_SEED`: the seed of all random choices of a run; by default a new one every
    /// day.
    static let seed = UInt64(number("SLUICE_CRASH_SEED") ?? time(nil) / 86_400)
    /// `SLUICE_CRASH_IMAGES`: the number of disks that a simulated power cut leaves.
    static let images = number("SLUICE_CRASH_IMAGES") ?? 120

    /// Rounds of a run; each begins with an empty cache.
    static var rounds: Int {
        if let kills { return max(1, (kills + killsOfARound - 1) / killsOfARound) }
        return seconds.map { max(1, $0 / secondsOfARound) } ?? 6
    }

    static var killsPerRound: Int {
        if let kills { return max(1, min(kills, killsOfARound)) }
        return seconds == nil ? killsOfARound : Int.max
    }

    /// When a round that begins now ends.
    static var endOfRound: ContinuousClock.Instant? {
        seconds.map { .now + .seconds(Double($0) / Double(rounds)) }
    }

    private static func number(_ name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }
}

/// One object of the origin's.
struct CrashSubject: Sendable {
    let path: String
    /// The behaviour, in the grammar of `Behaviour`.
    let behaviour: String
    let sizes: ClosedRange<Int>
    /// Requested under the mount, where HTTP's own rules demand a revalidation every time.
    let isRevalidated: Bool
    /// Kept while there is room; false for bodies that a closed connection may have cut.
    var isKept: Bool { !behaviour.contains("cc=") && !behaviour.contains("eof=") }

    /// Small and large objects, with and without lengths, ranges, speed limits and correct lengths.
    static let all: [CrashSubject] = {
        var all: [CrashSubject] = []
        func add(_ count: Int, _ sizes: ClosedRange<Int>, _ behaviour: String) {
            for _ in 0..<count {
                let isRevalidated = behaviour.contains("no-cache")
                all.append(
                    CrashSubject(
                        path: "/vod/subject\(all.count).ts", behaviour: behaviour, sizes: sizes,
                        isRevalidated: isRevalidated))
            }
        }
        add(8, 1_000...60_000, "fb=0")
        add(4, 200_000...700_000, "fb=0")
        add(2, 400_000...900_000, "rate=6000000")
        add(1, 2_000_000...3_000_000, "rate=12000000")
        add(3, 20_000...200_000, "cc=no-cache")
        add(1, 300_000...600_000, "cc=no-cache&rate=4000000")
        add(1, 20_000...90_000, "cc=no-cache&noetag=1&lastmod=&chunked=1")
        add(2, 50_000...400_000, "chunked=1&norange=1")
        add(1, 100_000...500_000, "chunked=1&rate=4000000")
        add(1, 100_000...200_000, "eof=1&norange=1")
        add(1, 10_000...90_000, "cc=no-store")
        add(2, 200_000...500_000, "reset=100000&fails=3")
        return all
    }()
}

/// The origin, the folder and the daemon of one round.
final class CrashWorld: Sendable {
    let cdn = FixtureCDN()
    /// The cache folder that the round began with.
    let firstFolder: String
    private let temporary: TemporaryFolder
    private let arguments: [String]
    private let folder: Shared<String>
    /// Every content that each subject has had, the current one last.
    private let generations: Mutex<[[[UInt8]]]>
    private let running: Shared<DaemonProcess?> = Shared(nil)

    /// Starts the origin; the cache folder is empty.
    init(cacheSize: String, _ dice: inout SeededDice) throws {
        temporary = try TemporaryFolder()
        firstFolder = temporary.makeFolder("cache")
        folder = Shared(firstFolder)
        try cdn.start()
        arguments = [
            "serve", "--port", "0", "--allow-private", "--min-free", "0", "--cache-size", cacheSize,
            "--mount", "/vod/=\(cdn.url("/vod/"))", "--log-level", "error",
        ]
        generations = Mutex(CrashSubject.all.map { _ in [] })
        for index in CrashSubject.all.indices { renew(index, &dice) }
        setHaste(false)
    }

    /// Lets the origin send as fast as it can, or as the subjects' behaviour says.
    func setHaste(_ isHasty: Bool) {
        for subject in CrashSubject.all {
            var behaviour = Behaviour(query: subject.behaviour)
            if isHasty { behaviour.rate = nil }
            cdn.setBehaviour(behaviour, for: subject.path)
        }
    }

    deinit {
        kill()
        cdn.stop()
    }

    /// Gives a subject other bytes, of another length.
    func renew(_ index: Int, _ dice: inout SeededDice) {
        let subject = CrashSubject.all[index]
        let size = Int.random(in: subject.sizes, using: &dice)
        let bytes = FixtureCDN.syntheticBytes("\(subject.path)-\(dice.next())", 0..<size)
        // Recorded as valid first, then served.
        generations.withLock { $0[index].append(bytes) }
        cdn.put(subject.path, bytes)
    }

    /// The number of each subject's current generation.
    var present: [Int] { generations.withLock { $0.map { $0.count - 1 } } }

    /// The generation that has `bytes` at `start`, of those from `oldest` on.
    ///
    /// With a total, only one of that length.
    func generation(
        of subject: Int, with bytes: [UInt8], at start: Int, total: Int?, from oldest: Int
    ) -> (number: Int, length: Int)? {
        let candidates = generations.withLock { $0[subject] }
        for number in candidates.indices.reversed() where number >= oldest {
            let content = candidates[number]
            guard total == nil || total == content.count else { continue }
            guard start + bytes.count <= content.count else { continue }
            if isSame(content[start..<start + bytes.count], bytes[...]) {
                return (number, content.count)
            }
        }
        return nil
    }

    /// The URL at the daemon.
    func url(of subject: Int) throws -> String {
        let path = CrashSubject.all[subject].path
        guard CrashSubject.all[subject].isRevalidated else {
            return try daemon().baseURL + "/" + cdn.url(path)
        }
        return try daemon().baseURL + "/vod/" + path.dropFirst(5)
    }

    // MARK: Life and death

    func daemon() throws -> DaemonProcess {
        guard let daemon = running.value else { throw ScenarioFailure("no daemon runs") }
        return daemon
    }

    /// The folder of the daemon that was started last.
    var cacheFolder: String { folder.value }

    /// Starts the daemon, on the first folder unless another one is given.
    func start(
        on other: String? = nil, _ environment: [(name: String, value: String)] = []
    ) throws {
        folder.update { $0 = other ?? firstFolder }
        let daemon = try DaemonProcess(
            arguments + ["--cache-dir", cacheFolder], environment: environment)
        running.update { $0 = daemon }
    }

    /// Stops the daemon cleanly.
    func stop() throws {
        let exit = try daemon().terminate(within: .seconds(20))
        guard exit == .code(0) else { throw ScenarioFailure("the daemon ended with \(exit)") }
        running.update { $0 = nil }
    }

    func kill() {
        guard let daemon = running.value else { return }
        daemon.kill(SIGKILL)
        _ = try? daemon.waitForExit()
        running.update { $0 = nil }
    }

    /// Starts the daemon and kills it, possibly before it is ready.
    func startAndKill(afterMicroseconds delay: Int) throws {
        let command = [try DaemonProcess.builtBinary()] + arguments + ["--cache-dir", cacheFolder]
        let child = try ChildProcess(command)
        usleep(UInt32(delay))
        child.kill(SIGKILL)
        guard child.waitForExit() != nil else { throw ScenarioFailure("kill -9 did not end it") }
    }

    /// One number of `GET /api/stats`.
    func figure(_ name: String) throws -> Int {
        let text = try ScriptedPlayer(daemon().baseURL).get("/api/stats").text
        guard let found = text.firstRange(of: "\"\(name)\":"),
            let number = Int(text[found.upperBound...].prefix { $0.isNumber || $0 == "-" })
        else { throw ScenarioFailure("no figure \(name) in \(text)") }
        return number
    }
}

/// Compares quickly in a debug build, too.
func isSame(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
    left.withUnsafeBytes { left in
        right.withUnsafeBytes { right in
            guard left.count == right.count else { return false }
            guard let some = left.baseAddress, let other = right.baseAddress else { return true }
            return memcmp(some, other, left.count) == 0
        }
    }
}
