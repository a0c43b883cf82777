import HTTP
import HTTPServer
import Model
import Posix
import Upstream

/// The record of an exchange that asked an origin, or may have to; it takes the place of the plain one,
/// so that hits pay nothing for it.
final class OriginRecord: ExchangeRecord {
    let record: AccessRecord
    /// Nil where no origin was asked after all.
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
    /// What the access log will say; nil without a log.
    @inline(__always) var accessRecord: AccessRecord? {
        guard let record else { return nil }
        if let plain = record as? AccessRecord { return plain }
        return (record as? OriginRecord)?.record
    }

    /// Has the log say what the exchange cost its origin, as far as that is known at its end.
    func note(_ trace: @escaping () -> TransferTrace?) {
        if let known = record as? OriginRecord {
            known.trace = trace
        } else if let plain = record as? AccessRecord {
            record = OriginRecord(plain, trace)
        }
    }
}

extension TransferTrace.Report {
    /// The same as an object; times in milliseconds, null for phases that did not happen.
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

    /// The named fields of the access log; times in milliseconds, like the others.
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
