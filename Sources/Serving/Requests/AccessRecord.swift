// The data of one request for the access log and the console, collected while it is answered.
import AccessLogFormat
import CachePolicy
import Console
import HLS
import HTTP
import HTTPServer
import Model
import Numbers
import Posix
import Routing
import Store
import Upstream
import URISyntax

/// One record; bound to its exchange's loop.
final class AccessRecord: ExchangeRecord {
    private let log: AccessLog?
    private let events: EventFeed
    private let method: HTTPMethod
    private let version: HTTPVersion
    private let receivedAt: Monotonic
    private let client: String?
    private let tlsVersion: String?
    private var resource: Resource?
    /// The origin URL of a passed-through request.
    private var passedURL: AbsoluteURL?
    private var outcome = "own"
    private var reason: String?
    private var offset: Int64 = 0
    private var object: StoredObject?

    init(_ core: ProxyCore, _ exchange: Exchange) {
        log = core.accessLog
        events = core.events
        client = Self.client(of: exchange, trustsForwarded: core.settings.trustsForwarded)
        method = exchange.request.method
        version = exchange.request.version
        tlsVersion = exchange.tlsVersion
        receivedAt = exchange.receivedAt
    }

    /// Notes a response from the store or the origin.
    func note(_ disposition: Disposition, _ resource: Resource) {
        self.resource = resource
        outcome = disposition.kindName
        reason = disposition.reasonName
    }

    /// Notes that the response is a part of an object, from this byte on.
    func note(_ object: StoredObject, from offset: Int64) {
        self.object = object
        self.offset = offset
    }

    /// Notes that the request was passed through to its origin.
    func note(passed url: AbsoluteURL) {
        passedURL = url
        outcome = "passed"
        reason = "method"
    }

    /// Notes a failure; without a resource, the request was refused before any lookup.
    func note(_ failure: ProxyFailure, _ resource: Resource?) {
        self.resource = resource
        outcome = resource == nil ? "refused" : "failed"
        reason = failure.fault.rawValue
    }

    func finish(_ end: ResponseOutcome) {
        if let log { write(end, nil, to: log) }
        if events.hasListeners { publish(end, asking: nil) }
    }

    /// Finishes the record of an exchange that contacted an origin.
    func finish(_ end: ResponseOutcome, asking report: TransferTrace.Report) {
        if let log { write(end, report, to: log) }
        if events.hasListeners { publish(end, asking: report) }
    }

    private func write(
        _ end: ResponseOutcome, _ report: TransferTrace.Report?, to log: AccessLog
    ) {
        let now = Monotonic.now()
        let took = now - receivedAt
        let came = WallTime(nanoseconds: WallTime.now().nanoseconds - took.nanoseconds)
        var line = AccessLineWriter()
        line.append(.time, Self.decimals(came.nanoseconds / 1_000_000))
        line.append(.method, method.name)
        line.append(.status, end.status.map { String($0.rawValue) })
        line.append(.bytes, String(end.bodyBytes))
        line.append(.duration, Self.decimals(took.nanoseconds / 1_000))
        line.append(.outcome, outcome)
        line.append(.reason, reason)
        line.append(.role, (resource?.role?.letter).map { String(UnicodeScalar($0)) })
        line.append(.title, resource?.session.id.text)
        line.append(.key, (resource?.key.hex.prefix(32)).map(String.init))
        line.append(.offset, resource == nil ? nil : String(offset))
        line.append(.total, resource == nil ? nil : object?.total.map { String($0) })
        line.append(.url, (resource?.url ?? passedURL)?.redacted)
        line.append(.client, client)
        line.append(.protocol, "\(version)")
        line.append(.tls, tlsVersion)
        if let report { line.appendNamed(report.accessFields) }
        log.append(Array((line.text + "\n").utf8))
    }

    /// Reports the request to the console, with the fields of the log as members; requests for own
    /// pages are left out.
    private func publish(_ end: ResponseOutcome, asking report: TransferTrace.Report?) {
        guard outcome != "own" else { return }
        let took = Monotonic.now() - receivedAt
        let came = WallTime.now().nanoseconds - took.nanoseconds
        var members: [JSONValue.Member] = [
            .init("at", .number(came / 1_000_000)), .init("method", .text(method.name)),
            .init("status", .optional(end.status.map { Int64($0.rawValue) })),
            .init("bytes", .number(end.bodyBytes)), .init("ms", .fraction(took.inMilliseconds)),
            .init("ending", .text(end.ending.rawValue)), .init("outcome", .text(outcome)),
            .init("reason", reason.map(JSONValue.text) ?? .null),
            .init("client", client.map(JSONValue.text) ?? .null),
            .init("protocol", .text("\(version)")),
            .init("tls", tlsVersion.map(JSONValue.text) ?? .null),
        ]
        if let resource {
            let role = resource.role.map { String(UnicodeScalar($0.letter)) }
            members += [
                .init("role", role.map(JSONValue.text) ?? .null),
                .init("title", .text(resource.session.id.text)),
                .init("offset", .number(offset)), .init("total", .optional(object?.total)),
            ]
        }
        let url = resource?.url ?? passedURL
        members.append(.init("url", url.map { .text($0.redacted) } ?? .null))
        members.append(.init("origin", report?.json ?? .null))
        events.publish("request", .object(members))
    }

    /// Returns the client: the peer, or the address that a trusted proxy in front reports.
    ///
    /// That proxy appends to the field, so that only the last address is trustworthy.
    private static func client(of exchange: Exchange, trustsForwarded: Bool) -> String? {
        if trustsForwarded, let field = exchange.request.fields.all("X-Forwarded-For").last {
            let text = field.split(separator: ",").last.map { $0.filter { $0 != " " } } ?? ""
            if let address = SocketAddress(host: text, port: 0) { return address.host }
        }
        return exchange.peer?.host
    }

    /// Formats a number of thousandths as a decimal fraction.
    static func decimals(_ thousandths: Int64) -> String {
        "\(thousandths / 1_000).\(String(thousandths % 1_000, width: 3))"
    }
}

extension Disposition {
    /// The name without its reason.
    var kindName: String {
        switch self {
        case .bypass: "bypass"
        case .refreshed: "refreshed"
        default: name
        }
    }

    /// The reason's name; nil for an outcome without one.
    var reasonName: String? {
        switch self {
        case .bypass(let reason): reason.rawValue
        case .refreshed(let reason): reason.rawValue
        default: nil
        }
    }
}
