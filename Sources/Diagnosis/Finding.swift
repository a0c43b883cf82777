/// One result of `sluice doctor`.
package struct Finding: Sendable, Equatable {
    package enum Verdict: String, Sendable, Comparable {
        case ok, warning, problem

        package static func < (a: Verdict, b: Verdict) -> Bool { a.rank < b.rank }

        private var rank: Int {
            switch self {
            case .ok: 0
            case .warning: 1
            case .problem: 2
            }
        }
    }

    /// What was looked at, in a word or two.
    package let check: String
    package let verdict: Verdict
    /// What was found; holds no secrets.
    package let text: String
    /// What to do; nil where there is nothing to do.
    package let advice: String?

    package static func ok(_ check: String, _ text: String) -> Finding {
        Finding(check: check, verdict: .ok, text: text, advice: nil)
    }

    package static func warning(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, verdict: .warning, text: text, advice: advice)
    }

    package static func problem(_ check: String, _ text: String, _ advice: String) -> Finding {
        Finding(check: check, verdict: .problem, text: text, advice: advice)
    }
}
