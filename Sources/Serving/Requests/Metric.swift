// One metric, written in the Prometheus text exposition format 0.0.4.

/// A metric with its samples.
struct Metric {
    enum Kind: String {
        case counter, gauge, histogram
    }

    /// One line of a metric.
    struct Sample {
        /// What is appended to the metric's name: `_bucket`, `_sum` or `_count` of a histogram.
        var suffix = ""
        /// Names and values; values need no escaping.
        var labels: [(name: String, value: String)] = []
        let value: String
    }

    /// The name in JSON and, after `sluice_`, in the text format.
    let name: String
    let kind: Kind
    let help: String
    /// The value of a metric with one sample; nil for one that was given samples.
    let number: Int64?
    /// Without samples the text format leaves the metric out.
    let samples: [Sample]

    /// A metric with one sample.
    init(_ kind: Kind, _ name: String, _ help: String, _ value: Int64) {
        self.name = name
        self.kind = kind
        self.help = help
        number = value
        samples = [Sample(value: "\(value)")]
    }

    init(_ kind: Kind, _ name: String, _ help: String, samples: [Sample]) {
        self.name = name
        self.kind = kind
        self.help = help
        number = nil
        self.samples = samples
    }

    /// Appends the metric to a text in the exposition format.
    func write(to text: inout String) {
        guard !samples.isEmpty else { return }
        text += "# HELP sluice_\(name) \(help)\n# TYPE sluice_\(name) \(kind.rawValue)\n"
        for sample in samples {
            text += "sluice_\(name)\(sample.suffix)"
            if !sample.labels.isEmpty {
                let labels = sample.labels.map { "\($0.name)=\"\($0.value)\"" }
                text += "{\(labels.joined(separator: ","))}"
            }
            text += " \(sample.value)\n"
        }
    }
}
