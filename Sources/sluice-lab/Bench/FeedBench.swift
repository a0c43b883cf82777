import CommandSupport
import Glibc
import Posix
import Reactor
import Synchronization

/// The runs of `sluice-lab bench feed`, several in parallel, and their results.
struct FeedBench: Sendable {
    struct Terms: Sendable {
        let profile: String
        let visits: Int
        let runs: Int
        let jobs: Int
        let speed: Double
        let patience: Double
        let itemRate: Int
        let itemSegments: Int
        let isSimulated: Bool
        let isVerbose: Bool
        let sampleCDN: String?
    }

    let terms: Terms
    let schemes: [FeedScheme]
    let patterns: [ViewerPattern]

    /// One run of one scheme.
    private struct Task: Sendable {
        let scheme: Int
        let pattern: Int
        let run: Int
    }

    /// Blocks until all runs are over.
    ///
    /// - Throws: `ExitCode` after printing the error.
    func run() throws -> FeedResults {
        // The schemes of a run in sequence, so that other load on this machine affects them all.
        let tasks = patterns.indices.flatMap { pattern in
            (0..<terms.runs).flatMap { run in
                schemes.indices.map { Task(scheme: $0, pattern: pattern, run: run) }
            }
        }
        let next = Box(0)
        let found = Box([(Task, ViewerFigures)]())
        let faults = Box(0)
        let threads = try (0..<min(terms.jobs, tasks.count)).map { _ in
            try PosixThread(name: "viewer") {
                do {
                    let place = try Place(terms)
                    while let task = next.value.withLock({ place -> Task? in
                        guard place < tasks.count else { return nil }
                        place += 1
                        return tasks[place - 1]
                    }) {
                        let figures = try self.run(task, at: place)
                        found.value.withLock { $0.append((task, figures)) }
                    }
                } catch {
                    faults.value.withLock { $0 += 1 }
                }
            }
        }
        for thread in threads { thread.join() }
        guard faults.value.withLock({ $0 }) == 0 else {
            throw commandFailure("the runs ended early")
        }
        var results = FeedResults(terms: terms, schemes: schemes, patterns: patterns)
        for (task, figures) in found.value.withLock({ $0 }) {
            results.add(figures, scheme: task.scheme, pattern: task.pattern, run: task.run)
        }
        return results
    }

    private final class Box<Value: Sendable>: Sendable {
        let value: Mutex<Value>
        init(_ value: Value) { self.value = Mutex(value) }
    }

    private func run(_ task: Task, at place: Place) throws -> ViewerFigures {
        let visits = patterns[task.pattern].visits(
            terms.visits, items: terms.visits, seed: UInt64(task.run + 1))
        guard let stand = place.stand else {
            let model = FeedModel(
                .init(terms), items: terms.visits, parameters: schemes[task.scheme].parameters)
            return model.run(visits)
        }
        // Resets the outages, so that they hit every scheme at the same visits.
        try stand.shape(terms.profile, speed: terms.speed)
        let daemon = try stand.daemon([])
        _ = try stand.figures()
        let viewer = FeedViewer(
            daemon.base, titles: place.titles, speed: terms.speed, patience: terms.patience)
        viewer.isVerbose = terms.isVerbose
        var figures = try viewer.run(schemes[task.scheme], visits)
        figures.sent = try stand.figures().bytes
        return figures
    }

    /// The environment of one thread's runs.
    private final class Place {
        let stand: BenchStand?
        let titles: [String]

        init(_ terms: Terms) throws {
            guard !terms.isSimulated else {
                stand = nil
                titles = []
                return
            }
            let stand = try BenchStand(program: terms.sampleCDN)
            try stand.shape(terms.profile, speed: terms.speed)
            let shape = BenchStand.TitleShape(
                segments: terms.itemSegments, bytes: terms.itemRate * 2, seconds: 2)
            titles = try (0..<terms.visits).map { try stand.title("item-\($0)", shape) }
            self.stand = stand
        }
    }
}

extension FeedModel.Terms {
    init(_ bench: FeedBench.Terms) {
        self.init()
        if let link = BenchStand.link(bench.profile) {
            shared = Double(link.shared)
            single = Double(link.single)
            delay = Double(link.delay) / 1_000
        }
        segments = bench.itemSegments
        segmentBytes = Double(bench.itemRate * 2)
        patience = bench.patience
    }
}
