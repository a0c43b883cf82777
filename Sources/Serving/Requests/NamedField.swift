import AccessLogFormat
import HTTP
import Lookahead
import Model
import Posix
import Upstream

/// A named field of the access log, which is also a member of an object in the console's events.
struct NamedField {
    /// The name in the access log.
    let name: String
    /// The name of the member.
    let member: String
    let value: AccessValue

    /// - Parameters:
    ///   - name: the name in the access log.
    ///   - member: the name of the member; nil for the same.
    ///   - value: the value.
    init(_ name: String, member: String? = nil, _ value: AccessValue) {
        self.name = name
        self.member = member ?? name
        self.value = value
    }
}

extension [NamedField] {
    /// The fields as an object; times in milliseconds, null for unknown values.
    var json: JSONValue {
        .object(map { JSONValue.Member($0.member, JSONValue($0.value)) })
    }

    /// The fields as text of the access log; times in milliseconds.
    var accessText: String {
        map { "\($0.name)=\($0.value.text)" }.joined(separator: " ")
    }
}

extension PlayerHints {
    /// The player's report on its playback, by the names of CMCD; empty without one.
    var report: [NamedField] {
        guard bufferSeconds != nil || hasStalled || throughput != nil else { return [] }
        return [
            NamedField("bl", AccessValue(bufferSeconds.map { Int64(($0 * 1_000).rounded()) })),
            NamedField("bs", .flag(hasStalled)),
            NamedField("mtp", AccessValue(throughput.map { Int64(($0 / 1_000).rounded()) })),
        ]
    }
}

extension TransferTrace.Report {
    /// What the transfers cost; unknown for phases that did not happen.
    var fields: [NamedField] {
        [
            NamedField("peer", member: "address", AccessValue(latest.address?.host)),
            NamedField("protocol", AccessValue(latest.version?.logName)),
            NamedField("connection", AccessValue(latest.connection?.rawValue)),
            NamedField("handshake", AccessValue(latest.handshake?.rawValue)),
            NamedField("tries", .number(Int64(tries))),
        ]
            + TransferPhase.allCases.map { phase in
                let time = latest[phase].map { AccessValue.duration(Int64($0)) }
                return NamedField(phase.name, member: "\(phase.name)_ms", time ?? .unknown)
            }
    }
}
