// Many seeds, run in parallel processes.
import Glibc

/// Runs seeds and prints their results.
final class Campaign {
    private let jobs: Int
    private let twice: Bool
    private let stopsAtFailure: Bool
    private var running: [pid_t: (seed: UInt64, output: CInt)] = [:]
    private var failed: [UInt64: String] = [:]
    /// The oracle that failed for each failed seed; `ChildRun.crash` for a run without a result.
    private var oracles: [UInt64: String] = [:]
    private var hashes: [UInt64: String] = [:]
    private var marks: [String: Int] = [:]
    private var seconds = 0
    private var finished = 0

    private var groups: [(seeds: any Sequence<UInt64>, seconds: Int?)] = []

    init(jobs: Int, twice: Bool, stopsAtFailure: Bool) {
        self.jobs = jobs
        self.twice = twice
        self.stopsAtFailure = stopsAtFailure
    }

    /// Adds seeds to run: all of them, or as many as fit into `seconds`.
    func add(_ seeds: some Sequence<UInt64>, for seconds: Int? = nil) {
        groups.append((seeds, seconds))
    }

    /// - Returns: true if every seed passed.
    func run() -> Bool {
        let begin = time(nil)
        // All first runs precede the second runs: two runs of one seed share a folder.
        for _ in 0..<(twice ? 2 : 1) {
            for group in groups { run(group.seeds, until: group.seconds.map { time(nil) + $0 }) }
        }
        report(in: max(1, time(nil) - begin))
        return failed.isEmpty
    }

    /// Prints, for at most `count` failed seeds, the shortest command that fails in the same way.
    func shrink(atMost count: Int) {
        for (seed, oracle) in oracles.sorted(by: { $0.key < $1.key }).prefix(count) {
            Shrinking(seed: seed, oracle: oracle).run()
        }
    }

    private func run(_ seeds: some Sequence<UInt64>, until end: Int?) {
        var waiting = seeds.makeIterator()
        var isOver = false
        while !isOver || !running.isEmpty {
            if stopsAtFailure, !failed.isEmpty { isOver = true }
            while !isOver, running.count < jobs {
                if let end, time(nil) >= end {
                    isOver = true
                } else if let seed = waiting.next() {
                    start(seed)
                } else {
                    isOver = true
                }
            }
            if !running.isEmpty { collect() }
        }
    }

    private func start(_ seed: UInt64) {
        guard let (pid, output) = ChildRun.start(["--seed", "\(seed)"], keepsErrors: true) else {
            failed[seed] = "could not be started"
            return
        }
        running[pid] = (seed, output)
    }

    private func collect() {
        var status: CInt = 0
        let pid = waitpid(-1, &status, 0)
        guard pid > 0, let (seed, output) = running.removeValue(forKey: pid) else { return }
        finished += 1
        let text = ChildRun.take(output)
        let lines = text.split(separator: "\n")
        guard let result = lines.first(where: { $0.hasPrefix("RESULT ") }) else {
            failed[seed] = "ended with status \(status): \(lines.last ?? "")"
            oracles[seed] = ChildRun.crash
            return print("seed \(seed): ended with status \(status) before its end\n\(text)")
        }
        take(result.split(separator: " "), seed)
        if status != 0 {
            failed[seed] = String(lines.last ?? "")
            oracles[seed] = ChildRun.oracle(in: text)
            print("seed \(seed):\n\(text)")
        }
    }

    private func take(_ words: [Substring], _ seed: UInt64) {
        for word in words.dropFirst(3) {
            let parts = word.split(separator: "=")
            guard parts.count == 2 else { continue }
            switch parts[0] {
            case "hash":
                if let known = hashes[seed], known != parts[1] {
                    failed[seed] = "two runs differed"
                }
                hashes[seed] = String(parts[1])
            case "seconds": seconds += Int(parts[1]) ?? 0
            case "oracle", "turns", "longest": break
            default: marks[String(parts[0]), default: 0] += Int(parts[1]) ?? 0
            }
        }
    }

    private func report(in real: Int) {
        for (kind, count) in marks.sorted(by: { $0.key < $1.key }) { print("\(count)\t\(kind)") }
        let faults = marks.filter { !$0.key.hasPrefix("player") && $0.key != "start" }.values
            .reduce(0, +)
        print(
            "\(finished) runs, \(failed.count) failed; \(seconds / 3_600) simulated hours in \(real) s: "
                + "\(seconds * 60 / real / 3_600) hours and \(faults * 60 / real) faults a minute")
        for (seed, why) in failed.sorted(by: { $0.key < $1.key }) { print("seed \(seed): \(why)") }
    }
}
