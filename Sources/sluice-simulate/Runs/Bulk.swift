// Long runs of a daemon with few bytes: its resources must not grow with time.
import ArgumentParser
import CSimulation
import DaemonService
import Glibc
import Logging

/// The kinds of long runs.
enum BulkKind: String, ExpressibleByArgument, CaseIterable {
    /// A channel that is watched day and night for 30 days.
    case liveMonth = "live-month"
    /// A home where a film is watched each evening, for 365 days.
    case homeYear = "home-year"
    /// A feed of short titles in which somebody swipes four times a day, for 7 days.
    case feedsWeek = "feeds-week"

    var days: Int64 {
        switch self {
        case .liveMonth: 30
        case .homeYear: 365
        case .feedsWeek: 7
        }
    }
}

/// Runs a span of time and compares the daemon's resources at its end with those before.
struct Bulk {
    private let kind: BulkKind
    private let prints: Bool

    init(_ kind: BulkKind, prints: Bool) {
        self.kind = kind
        self.prints = prints
    }

    /// The number of samples over the span.
    private static let looks: Int64 = 64
    static let day = 86_400 * World.second

    func run() throws {
        let number = BulkKind.allCases.firstIndex(of: kind) ?? 0
        let place = RunProcess(number: .max - UInt64(number), processorSeconds: 7_200)
        let settings = [
            "port": "\(SimulatedDaemon.port)", "allow-private": "true", "log-level": "warning",
            "loops": "1",
            "cache-size": "8MB", "min-free": "0", "cache-dir": "\(place.home)/cache",
        ]
        let configuration = try readConfiguration(scalars: settings, lists: [:], file: nil)
        let log = LogLines()
        LoggingSystem.bootstrap { _ in TraceLog(log) }
        let trace = Trace(prints: prints ? { place.say($0) } : nil)
        let world = World(seed: UInt64(number) + 1, trace: trace, log: log)
        let cdn = SimulatedCDN(world, films: [], lives: [])
        let checks = Checks(world: world, cdn: cdn)
        let daemon = SimulatedDaemon(world, configuration)
        world.begin()
        daemon.start()
        world.run(until: 5 * World.second)
        let life = makeLife(checks)
        cdn.regions.append(life.region)
        life.start()
        let span = kind.days * Self.day
        var looks: [BulkLook] = []
        place.say(
            "| day | heap KiB | descriptors | pages of databases | of a log | files | requests |")
        place.say("|---|---|---|---|---|---|---|")
        for number in 1...Self.looks where world.failure == nil {
            world.run(until: span * number / Self.looks)
            let look = BulkLook(place.home)
            looks.append(look)
            guard number % 8 == 0 else { continue }
            place.say("| \(world.now / Self.day) | \(look.text) | \(life.requests) |")
        }
        if world.failure == nil { BulkLook.compare(looks, world) }
        life.stop()
        daemon.terminate()
        world.run(for: 60 * World.second) { daemon.fibers == 0 }
        if daemon.fibers > 0 { world.fault(.startsAndStops, "\(daemon.fibers) threads are left") }
        csim_end()
        if let failure = world.failure {
            for line in trace.tail where !prints { place.say(line) }
            place.say("\(failure.oracle.rawValue): \(failure.text)")
        }
        place.say("\(kind.rawValue): \(world.failure == nil ? "passed" : "FAILED")")
        place.end(world.failure == nil ? 0 : 1)
    }

    private func makeLife(_ checks: Checks) -> BulkLife {
        switch kind {
        case .liveMonth: LiveMonth(checks)
        case .homeYear: HomeYear(checks)
        case .feedsWeek: FeedsWeek(checks)
        }
    }
}

/// The daemon's resources at one moment.
struct BulkLook {
    let heap, descriptors, pages, files: Int
    /// Pages of the longest write-ahead log, which SQLite restarts at about a thousand.
    let log: Int

    init(_ home: String) {
        heap = Int(csim_heap_bytes()) / 1_024
        var (pages, files, log) = (0, 0, 0)
        // The simulated disk keeps beside the folder what a power cut would restore.
        for (path, size) in filesBelow(home + "/cache") {
            if path.hasSuffix("-wal") {
                log = max(log, size / 4_096)
            } else if path.contains(".sqlite") {
                pages += (size + 4_095) / 4_096
            } else {
                files += 1
            }
        }
        (self.pages, self.files, self.log) = (pages, files, log)
        descriptors = names(in: "/proc/self/fd").count
    }

    var text: String { "\(heap) | \(descriptors) | \(pages) | \(log) | \(files)" }

    private static let mostLog = 1_300

    /// The most by which the last quarter may exceed the first, in addition to a tenth of the
    /// first.
    private static var bounds: [(name: String, value: KeyPath<BulkLook, Int>, slack: Int)] {
        [
            ("KiB of heap", \.heap, 1_024), ("descriptors", \.descriptors, 8),
            ("pages of databases", \.pages, 128), ("files", \.files, 32),
        ]
    }

    static func compare(_ looks: [BulkLook], _ world: World) {
        let quarter = looks.count / 4
        if let most = looks.map(\.log).max(), most > mostLog {
            world.fault(.grows, "\(most) pages in a write-ahead log")
        }
        for (name, value, slack) in bounds {
            func mean(_ some: ArraySlice<BulkLook>) -> Int {
                some.reduce(0) { $0 + $1[keyPath: value] } / max(1, some.count)
            }
            // The store fills up first.
            let first = mean(looks.prefix(quarter).suffix(quarter / 2))
            let last = mean(looks.suffix(quarter))
            if last > first + first / 10 + slack {
                world.fault(
                    .grows, "\(last) \(name) in the last quarter, \(first) in the first")
            }
        }
    }
}
