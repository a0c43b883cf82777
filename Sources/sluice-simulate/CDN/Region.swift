// Content of the CDN beside plain films and live streams.

/// A group of the CDN's paths with its own rules for responses.
protocol Region: AnyObject {
    /// The file under a path; nil if the path does not belong to this region.
    func file(_ path: String) -> OriginFile?
    /// The answer to a request; nil if the path does not belong to this region.
    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer?
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
