import AccessLogFormat
import HTTP
import HTTPServer
import Model
import Posix
import Upstream

/// The record of an exchange that contacted an origin, or may have to; replaces the plain one, so
/// that hits pay nothing for it.
final class OriginRecord: ExchangeRecord {
    let record: AccessRecord
    /// Returns nil if no origin was contacted after all.
    fileprivate var trace: () -> TransferTrace?

    init(_ record: AccessRecord, _ trace: @escaping () -> TransferTrace?) {
        self.record = record
        self.trace = trace
    }

    func finish(_ end: ResponseOutcome) {
        if let report = trace()?.report {
            record.finish(end, asking: report)
        } else {
            record.finish(end)
        }
    }
}

extension Exchange {
    /// The record for the access log and the console; nil without either.
    @inline(__always) var accessRecord: AccessRecord? {
        guard let record else { return nil }
        if let plain = record as? AccessRecord { return plain }
        return (record as? OriginRecord)?.record
    }

    /// Adds the costs of the exchange's transfers to its record, as known at its end.
    func note(_ trace: @escaping () -> TransferTrace?) {
        if let known = record as? OriginRecord {
            known.trace = trace
        } else if let plain = record as? AccessRecord {
            record = OriginRecord(plain, trace)
        }
    }
}

extension TransferTrace.Report {
    /// What the transfers cost: the names in the access log and in the console's events, and the values.
    private var fields: [(name: String, member: String, value: AccessValue)] {
        [
            ("peer", "address", AccessValue(latest.address?.host)),
            ("protocol", "protocol", AccessValue(latest.version?.logName)),
            ("connection", "connection", AccessValue(latest.connection?.rawValue)),
            ("handshake", "handshake", AccessValue(latest.handshake?.rawValue)),
            ("tries", "tries", .number(Int64(tries))),
        ]
            + TransferPhase.allCases.map { phase in
                let time = latest[phase].map { AccessValue.duration(Int64($0)) }
                return ("\(phase.name)", "\(phase.name)_ms", time ?? .unknown)
            }
    }

    /// The report as an object; times in milliseconds, null for phases that did not happen.
    var json: JSONValue {
        .object(fields.map { JSONValue.Member($0.member, JSONValue($0.value)) })
    }

    /// The named fields of the access log; times in milliseconds.
    var accessFields: String {
        fields.map { "\($0.name)=\($0.value.text)" }.joined(separator: " ")
    }
}
