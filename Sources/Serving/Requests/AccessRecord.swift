// The data of one request for the access log and the console, collected while it is answered.
import AccessLogFormat
import CachePolicy
import Console
import HLS
import HTTP
import HTTPServer
import Lookahead
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
    /// True if an own page was refused.
    private var isPageRefused = false
    private var reason: String?
    private var offset: Int64 = 0
    private var object: StoredObject?
    /// The player's report on its playback; empty without one.
    private var player: [NamedField] = []
    /// Returns what the exchange's transfers have cost; nil if no origin was contacted.
    fileprivate var trace: () -> TransferTrace? = { nil }

    init(_ core: ProxyCore, _ exchange: Exchange) {
        log = core.accessLog
        events = core.events
        client = Self.client(of: exchange, trustsForwarded: core.settings.trustsForwarded)
        method = exchange.request.method
        version = exchange.request.version
        tlsVersion = exchange.tlsVersion
        receivedAt = exchange.receivedAt
    }

    /// Notes what is requested, in case the player leaves before there is a response.
    func note(requested resource: Resource) {
        self.resource = resource
        outcome = Self.left
    }

    /// Notes what the player reports of its playback.
    func note(_ hints: PlayerHints) { player = hints.report }

    /// Notes that the request is about to be passed through to its origin.
    func note(passing url: AbsoluteURL) {
        passedURL = url
        outcome = Self.left
    }

    /// The outcome of a request for content whose player left before there was a response.
    private static let left = "left"

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

    /// Notes that the origin's response is passed on without being stored.
    ///
    /// - Parameter reason: why, if it has a name; nil for a response without content.
    func notePassed(_ reason: Storability.NoStoreReason? = nil) {
        outcome = "passed"
        self.reason = reason?.rawValue
    }

    /// Notes a failure; a request that was neither looked up nor passed through was refused.
    func note(_ failure: ProxyFailure, _ resource: Resource?) {
        self.resource = resource
        outcome = resource == nil && passedURL == nil ? "refused" : "failed"
        reason = failure.fault.rawValue
    }

    /// Notes that a request for an own page, or for a path without one, was refused.
    func note(refusedPage failure: ProxyFailure) {
        note(failure, nil)
        isPageRefused = true
    }

    func finish(_ end: ResponseOutcome) {
        let report = trace()?.report
        if let log { write(end, report, to: log) }
        if events.hasListeners { publish(end, report) }
    }

    private func write(
        _ end: ResponseOutcome, _ report: TransferTrace.Report?, to log: AccessLog
    ) {
        let duration = Monotonic.now() - receivedAt
        let named = (report?.fields ?? []) + player
        let line = AccessLine.text(named: named.isEmpty ? nil : named.accessText) {
            value(of: $0, end, duration)
        }
        log.append(Array(line.utf8))
    }

    /// Reports the request to the console, with the fields of the log as members; requests for own
    /// pages are left out.
    private func publish(_ end: ResponseOutcome, _ report: TransferTrace.Report?) {
        guard outcome != "own", !isPageRefused else { return }
        let duration = Monotonic.now() - receivedAt
        var members = AccessField.allCases.map { field in
            JSONValue.Member(field.member, JSONValue(value(of: field, end, duration)))
        }
        members.append(.init("origin", report?.fields.json ?? .null))
        members.append(.init("player", player.isEmpty ? .null : player.json))
        events.publish("request", .object(members))
    }

    /// Returns the value of a field of the log.
    private func value(
        of field: AccessField, _ end: ResponseOutcome, _ duration: Interval
    ) -> AccessValue {
        switch field {
        case .time: .time((WallTime.now().nanoseconds - duration.nanoseconds) / 1_000_000)
        case .method: .text(method.name)
        case .status: AccessValue(end.status.map { Int64($0.rawValue) })
        case .bytes: .number(end.bodyBytes)
        case .duration: .duration(duration.nanoseconds / 1_000)
        case .outcome: .text(end.status == nil ? Self.left : outcome)
        case .reason: AccessValue(reason)
        case .role: AccessValue((resource?.role?.letter).map { String(UnicodeScalar($0)) })
        case .title: AccessValue(resource?.session.id.text)
        case .key: AccessValue((resource?.key.hex.prefix(32)).map(String.init))
        case .offset: AccessValue(resource == nil ? nil : offset)
        case .total: AccessValue(resource == nil ? nil : object?.total)
        case .url: AccessValue((resource?.url ?? passedURL)?.redacted)
        case .client: AccessValue(client)
        case .protocol: .text("\(version)")
        case .tls: AccessValue(tlsVersion)
        case .ending: .text(end.ending.rawValue)
        }
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
}

extension Exchange {
    /// The record for the access log and the console; nil without either.
    @inline(__always) var accessRecord: AccessRecord? {
        guard let record else { return nil }
        return record as? AccessRecord
    }

    /// Adds the costs of the exchange's transfers to its record, as known at its end.
    func note(_ trace: @escaping () -> TransferTrace?) { accessRecord?.trace = trace }
}

extension JSONValue {
    /// Creates the value of a field in the console's events: times in milliseconds.
    init(_ value: AccessValue) {
        switch value {
        case .unknown: self = .null
        case .text(let text): self = .text(text)
        case .number(let number), .time(let number): self = .number(number)
        case .flag(let isTrue): self = .truth(isTrue)
        case .duration(let microseconds): self = .fraction(Double(microseconds) / 1_000)
        }
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
        case .bypass(let reason, _, _): reason.rawValue
        case .refreshed(let reason): reason.rawValue
        case .revalidated(let reason): reason?.rawValue
        default: nil
        }
    }
}
