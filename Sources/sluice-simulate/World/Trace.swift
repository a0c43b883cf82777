// The events of a run as lines, for people to read and for comparing two runs.

/// The trace of a run: all lines are hashed, the last ones kept.
final class Trace {
    private(set) var hash = Seeded.hash("")
    private var lines: [String] = []
    /// How many lines are kept at least.
    private static let most = 60
    private let prints: ((String) -> Void)?
    /// The count of each kind of event.
    private(set) var marks: [String: Int] = [:]

    init(prints: ((String) -> Void)?) { self.prints = prints }

    func note(_ time: Int64, _ text: String) {
        let millis = String(time / 1_000_000)
        let padded = String(repeating: " ", count: max(0, 10 - millis.count)) + millis
        let line = "\(padded) ms  \(text)"
        hash = Seeded.hash(line, from: hash)
        prints?(line)
        lines.append(line)
        if lines.count > 2 * Self.most { lines.removeFirst(Self.most) }
    }

    /// The last steps of the run, for a script.
    private(set) var steps: [RunStep] = []

    func step(_ time: Int64, _ kind: RunStep.Kind) {
        steps.append(RunStep(time: time, kind: kind))
        if steps.count > 2 * StoryScript.most { steps.removeFirst(StoryScript.most) }
    }

    func mark(_ kind: String) { marks[kind, default: 0] += 1 }

    /// The last lines of the run.
    var tail: [String] { Array(lines.suffix(Self.most)) }
}
