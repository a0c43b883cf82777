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
    /// The report as an object; times in milliseconds, null for phases that did not happen.
    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("address", latest.address.map { .text($0.host) } ?? .null),
            .init("protocol", latest.version.map { .text($0.logName) } ?? .null),
            .init("connection", latest.connection.map { .text($0.rawValue) } ?? .null),
            .init("handshake", latest.handshake.map { .text($0.rawValue) } ?? .null),
            .init("tries", .number(Int64(tries))),
        ]
        for phase in TransferPhase.allCases {
            let time = latest[phase].map { Double($0) / 1_000 }
            members.append(.init("\(phase.name)_ms", .optional(time)))
        }
        return .object(members)
    }

    /// The named fields of the access log; times in milliseconds.
    var accessFields: String {
        var text = "peer=\(latest.address?.host ?? "-")"
        text += " protocol=\(latest.version?.logName ?? "-")"
        text += " connection=\(latest.connection?.rawValue ?? "-")"
        text += " handshake=\(latest.handshake?.rawValue ?? "-") tries=\(tries)"
        for phase in TransferPhase.allCases {
            let time = latest[phase].map { AccessRecord.decimals(Int64($0)) }
            text += " \(phase.name)=\(time ?? "-")"
        }
        return text
    }
}
