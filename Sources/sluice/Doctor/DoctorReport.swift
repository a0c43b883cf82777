import CommandSupport
import Diagnosis

/// What `sluice doctor` found, without secrets.
struct DoctorReport: Encodable {
    private struct Row: Encodable {
        let check: String
        let verdict: String
        let text: String
        let advice: String?
    }

    private let version = sluiceVersion
    private let verdict: String
    private let findings: [Row]

    init(_ findings: [Finding], _ redaction: Redaction) {
        verdict = (findings.map(\.verdict).max() ?? .ok).rawValue
        self.findings = findings.map { finding in
            Row(
                check: finding.check, verdict: finding.verdict.rawValue,
                text: redaction.text(finding.text), advice: finding.advice.map(redaction.text))
        }
    }

    var hasProblem: Bool { verdict == Finding.Verdict.problem.rawValue }

    /// A line for each finding, and one below it with what to do.
    var text: String {
        var table = TextTable()
        for row in findings {
            table.add(row.verdict, row.check, row.text)
            if let advice = row.advice { table.add("", "", "do: " + advice) }
        }
        return table.text
    }

    func json() throws -> String { try prettyJSON(self) }
}
