// Content of the CDN beside plain films and live streams.

/// A group of the CDN's paths with its own rules for responses.
protocol Region: AnyObject {
    /// The file under a path; nil if the path does not belong to this region.
    func file(_ path: String) -> OriginFile?
    /// The answer to a request; nil if the path does not belong to this region.
    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN, _ fault: OriginFault?) -> OriginAnswer?
}

extension OriginRequest {
    var pathOnly: String { String(path.prefix { $0 != "?" }) }

    /// The value of a parameter of the query.
    func argument(_ name: String) -> String? {
        for pair in path.drop(while: { $0 != "?" }).dropFirst().split(whereSeparator: {
            "&?".contains($0)
        }) {
            let parts = pair.split(separator: "=", maxSplits: 1)
            if parts.first.map(String.init) == name {
                return parts.count > 1 ? String(parts[1]) : ""
            }
        }
        return nil
    }
}

extension OriginAnswer {
    /// A playlist that is generated when it is sent.
    static func list(
        after delay: Int64, rate: Int, control: String?, _ made: @escaping () -> String
    ) -> OriginAnswer {
        var answer = OriginAnswer(status: 200)
        answer.fields = [("Content-Type", "application/vnd.apple.mpegurl")]
        if let control { answer.fields.append(("Cache-Control", control)) }
        answer.delay = delay
        answer.rate = rate
        answer.made = { Array(made().utf8) }
        return answer
    }
}

/// The value of an attribute of a line of a playlist, without its quotation marks.
func attribute(_ name: String, of line: Substring) -> String? {
    var rest = line.drop { $0 != ":" }.dropFirst()
    while !rest.isEmpty {
        let key = rest.prefix { $0 != "=" }
        rest = rest.dropFirst(key.count + 1)
        let value: Substring
        if rest.first == "\"" {
            value = rest.dropFirst().prefix { $0 != "\"" }
            rest = rest.dropFirst(value.count + 2)
        } else {
            value = rest.prefix { $0 != "," }
            rest = rest.dropFirst(value.count)
        }
        rest = rest.dropFirst()
        if key == name { return String(value) }
    }
    return nil
}
