// What a soak measures: samples, their slopes, and a verdict.
import FixtureCDN
import Glibc
import ScenarioSupport

/// What the daemon takes at one moment.
struct SoakSample: Sendable {
    /// Seconds since the soak began.
    var time = 0.0
    /// Seconds since this daemon started.
    var age = 0.0
    /// Which daemon it is, counted from 0.
    var life = 0
    /// Whether all players had stopped before it.
    var isQuiet = false
    var values: [Double] = []

    /// What is measured, in the order of `values`.
    enum Figure: Int, CaseIterable, Sendable {
        case pss, descriptors, threads, databases, logs, disk

        var name: String {
            switch self {
            case .pss: "memory (PSS), KiB"
            case .descriptors: "descriptors"
            case .threads: "threads"
            case .databases: "databases, KiB"
            case .logs: "their logs, KiB"
            case .disk: "cache folder, KiB"
            }
        }

        /// How much more the last third of a life may take than its middle third: a share, and
        /// what varies besides.
        var allowance: (share: Double, more: Double) {
            switch self {
            case .pss: (0.10, 6_000)
            case .descriptors: (0.10, 24)
            case .threads: (0, 2)
            case .databases: (0.10, 512)
            case .logs: (0.10, 2_048)
            case .disk: (0.10, 8_192)
            }
        }
    }
}

extension SoakWorld {
    /// What the daemon takes now.
    func sample() -> [Double] {
        let pid = daemon.pid
        var pss = 0.0
        if let text = try? readFile("/proc/\(pid)/smaps_rollup") {
            for line in text.split(separator: 0x0A) where line.starts(with: Array("Pss:".utf8)) {
                let digits = line.filter { (0x30...0x39).contains($0) }
                pss = Double(String(decoding: digits, as: UTF8.self)) ?? 0
            }
        }
        let files = listFolder(cacheFolder).filter { $0.contains(".sqlite") }
        func kibibytes(_ names: [String]) -> Double {
            names.reduce(0) { $0 + Double(Self.diskBytes("\(cacheFolder)/\($1)")) / 1024 }
        }
        return [
            pss, Double(daemon.descriptorCount), Double(daemon.threadCount),
            kibibytes(files.filter { $0.hasSuffix(".sqlite") }),
            kibibytes(files.filter { $0.hasSuffix("-wal") }), kibibytes([""]),
        ]
    }

    /// Bytes on the disk of a file, or of a folder with all that is in it.
    private static func diskBytes(_ path: String) -> Int {
        var status = stat()
        guard lstat(path, &status) == 0 else { return 0 }
        let own = Int(status.st_blocks) * 512
        guard status.st_mode & S_IFMT == S_IFDIR else { return own }
        return listFolder(path).reduce(own) { $0 + diskBytes("\(path)/\($1)") }
    }
}

/// The samples of a soak, and what they come to.
struct SoakReport {
    private(set) var samples: [SoakSample] = []
    var seconds = 0.0
    /// How often each disturbance happened.
    var disturbances: [SoakDisturbance: Int] = [:]

    /// A life is judged if it has so many samples between disturbances.
    private static let fewestSamples = 24

    mutating func add(_ sample: SoakSample) { samples.append(sample) }

    /// The growth of a figure in an hour; nil without a life that is long enough.
    ///
    /// By least squares over the samples of each life, lives weighted by their samples; the first
    /// third of a life does not count.
    func slope(_ figure: SoakSample.Figure) -> Double? {
        var sum = 0.0
        var weight = 0.0
        for life in judgedLives() {
            let times = life.map(\.time)
            let values = life.map { $0.values[figure.rawValue] }
            let meanTime = times.reduce(0, +) / Double(times.count)
            let mean = values.reduce(0, +) / Double(values.count)
            let spread = times.reduce(0) { $0 + ($1 - meanTime) * ($1 - meanTime) }
            guard spread > 0 else { continue }
            let rise = zip(times, values).reduce(0) { $0 + ($1.0 - meanTime) * ($1.1 - mean) }
            sum += rise / spread * 3_600 * Double(life.count)
            weight += Double(life.count)
        }
        return weight > 0 ? sum / weight : nil
    }

    /// The later two thirds of each life that is long enough, without quiet moments.
    private func judgedLives() -> [[SoakSample]] {
        let lives = Dictionary(grouping: samples.filter { !$0.isQuiet }, by: \.life)
        return lives.values.compactMap { life in
            life.count >= Self.fewestSamples ? Array(life.dropFirst(life.count / 3)) : nil
        }
    }

    /// What grew; empty for nothing.
    var growth: [String] {
        SoakSample.Figure.allCases.flatMap { figure in
            // One life that grew may have met a disturbance; the median of all lives may not.
            let excesses = judgedLives().map { life -> Double in
                let values = life.map { $0.values[figure.rawValue] }
                let early = Self.mean(values.prefix(values.count / 2))
                let late = Self.mean(values.suffix(values.count / 2))
                return late - early * (1 + figure.allowance.share) - figure.allowance.more
            }.sorted()
            let isGrowing = excesses.isEmpty ? false : excesses[excesses.count / 2] > 0
            return (isGrowing ? ["\(figure.name) grows within a life"] : [])
                + quietGrowth(figure)
        }
    }

    /// With no player there the last lives may not take more than the first ones did.
    private func quietGrowth(_ figure: SoakSample.Figure) -> [String] {
        let quiet = samples.filter(\.isQuiet).map { $0.values[figure.rawValue] }
        // The cache fills in the first lives, and in short ones it is never full.
        guard quiet.count >= 4, !judgedLives().isEmpty else { return [] }
        let early = Self.mean(quiet[1..<(1 + quiet.count / 3)])
        let late = Self.mean(quiet.suffix(quiet.count / 3))
        let most = early * (1 + figure.allowance.share) + figure.allowance.more
        return late > most ? ["\(figure.name) without players grows from life to life"] : []
    }

    private static func mean(_ values: some Collection<Double>) -> Double {
        values.isEmpty ? 0 : values.reduce(0, +) / Double(values.count)
    }

    /// The table that `make soak` prints.
    func text(_ tally: SoakTally) -> String {
        var lines = [
            "soak: \(Int(seconds)) s, \(Set(samples.map(\.life)).count) lives of the daemon"
        ]
        let megabytes = tally.bytes / 1_000_000
        lines.append(
            "soak: \(tally.answers) answers, \(megabytes) MB compared, \(tally.hits) hits")
        for (what, count) in tally.done.sorted(by: { $0.key < $1.key }) {
            lines.append("soak:   \(count) \(what)")
        }
        let events = SoakDisturbance.allCases.map {
            "\(disturbances[$0, default: 0]) \($0.rawValue)"
        }
        lines.append("soak: disturbances: " + events.joined(separator: ", "))
        let excused = tally.excused.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        lines.append("soak: failures that these explain: " + excused.joined(separator: ", "))
        lines.append("")
        lines.append(
            "| figure | least | mean | most | per hour | without players, first and last |")
        lines.append("|---|---|---|---|---|---|")
        for figure in SoakSample.Figure.allCases {
            let values = samples.filter { !$0.isQuiet }.map { $0.values[figure.rawValue] }
            let quiet = samples.filter(\.isQuiet).map { $0.values[figure.rawValue] }
            let slope = slope(figure).map { Self.signed($0) } ?? "too short"
            lines.append(
                "| \(figure.name) | \(Int(values.min() ?? 0)) | \(Int(Self.mean(values))) | "
                    + "\(Int(values.max() ?? 0)) | \(slope) | \(Int(quiet.first ?? 0)), "
                    + "\(Int(quiet.last ?? 0)) |")
        }
        lines.append("")
        let wrong = growth + tally.faults.prefix(20)
        lines.append(contentsOf: wrong.map { "soak: \($0)" })
        lines.append(wrong.isEmpty ? "soak: passed" : "soak: FAILED")
        return lines.joined(separator: "\n")
    }

    private static func signed(_ value: Double) -> String {
        (value < 0 ? "" : "+") + "\(Int(value.rounded()))"
    }
}
