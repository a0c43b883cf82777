import AccessLogFormat
import HTTP
import HTTPServer
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
