import Model

/// The figures as lines of `name value`, in the daemon's order.
struct StatsTable {
    let lines: [String]

    /// Parses the object of /api/stats: values are numbers, texts, or objects of those.
    ///
    /// - Throws: `JSONFault` if it is malformed.
    init(json: String) throws(JSONFault) {
        lines = Self.lines(of: try JSONValue(parsing: Array(json.utf8)), under: "")
    }

    private static func lines(of value: JSONValue, under outer: String) -> [String] {
        guard case .object(let members) = value else { return [] }
        return members.flatMap { member in
            switch member.value {
            case .object: lines(of: member.value, under: "\(outer)\(member.name).")
            case .text(let text): ["\(outer)\(member.name) \(text)"]
            default: ["\(outer)\(member.name) \(member.value.encoded)"]
            }
        }
    }
}
