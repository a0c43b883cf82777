// Connections that are opened before any request needs them.
import CCurl
import COpenSSL
import HTTP
package import Posix
import Reactor
package import URISyntax

/// The result of an early connection.
package enum EarlyConnectionResult: String, Sendable, Hashable, CaseIterable {
    /// A connection was opened.
    case opened
    /// An idle or shared connection existed.
    case present
    /// The name, the connection or TLS failed.
    case failed
    /// No slot was free, or the host had no room.
    case skipped

    init(_ result: TransferResult) {
        switch result {
        case .success(let timings): self = timings.hop.connection == .new ? .opened : .present
        case .failure: self = .failed
        }
    }
}

/// The state of early connections of one client; bounded.
struct EarlyConnections {
    /// How often each result occurred, by its index in `allCases`.
    private(set) var counts = Array(repeating: 0, count: EarlyConnectionResult.allCases.count)
    /// False once libcurl has sent a request although it must not.
    var isPossible = true
    /// Until when no early connection to an origin is tried.
    private var pauses: [Origin: Monotonic] = [:]
    /// When the connections that have not carried a request were opened, by their local port.
    private var unused: [UInt16: Monotonic] = [:]

    /// The time between two attempts at an origin: as long as the connection is expected to stay
    /// open.
    private static let pause = Interval.seconds(5 as Int64)
    private static let pauseAfterFailure = Interval.seconds(30 as Int64)
    /// The most origins, and the most connections, that are remembered.
    private static let most = 256
    /// An older connection is not used.
    ///
    /// Some servers answer a connection without a request with 408, which would be taken for the
    /// response to the first request. The shortest limits in use are 5 seconds.
    private static let longestUnused = Interval.seconds(4 as Int64)

    mutating func note(_ result: EarlyConnectionResult, at origin: Origin, now: Monotonic) {
        if let place = EarlyConnectionResult.allCases.firstIndex(of: result) { counts[place] += 1 }
        if result == .failed { pauses[origin] = now + Self.pauseAfterFailure }
    }

    /// Returns whether an early connection to an origin may be tried now; if so, starts its pause.
    mutating func begin(_ origin: Origin, now: Monotonic) -> Bool {
        guard isPossible else { return false }
        if let until = pauses[origin], until > now { return false }
        if pauses.count >= Self.most { pauses = pauses.filter { $0.value > now } }
        if pauses.count >= Self.most { return false }
        pauses[origin] = now + Self.pause
        return true
    }

    /// Records a connection that was opened.
    mutating func opened(localPort: UInt16, now: Monotonic) {
        if unused.count >= Self.most { unused.removeAll() }
        unused[localPort] = now
    }

    /// Returns whether a connection has waited too long for its first request.
    mutating func isTooOld(localPort: UInt16, now: Monotonic) -> Bool {
        guard !unused.isEmpty, let opened = unused.removeValue(forKey: localPort) else {
            return false
        }
        return now - opened > Self.longestUnused
    }
}

extension UpstreamClient {
    /// Opens a connection to an origin, unless an idle one exists, and sends no request.
    ///
    /// It holds a slot while it is being opened, and is skipped if none can be spared. A transfer
    /// to the same origin waits for it briefly instead of opening another connection.
    package func connectEarly(to origin: Origin, timeout: Interval) {
        guard !isShutDown, depth == 0, !firstConnections.hasScout(to: origin),
            configuration.onlyOrigins.current.refusal(of: origin) == nil,
            early.begin(origin, now: loop.now), let root = try? AbsoluteURL("\(origin)/")
        else { return }
        var request = TransferRequest(url: root)
        request.method = .head
        request.connectsOnly = true
        request.followsRedirects = false
        request.timeouts.connect = timeout
        request.timeouts.firstByte = timeout
        let transfer = Transfer(request, id: takeID(), client: self, delegate: nil)
        guard let slot = queue.admitAtOnce(entry(for: transfer)) else {
            return early.note(.skipped, at: origin, now: loop.now)
        }
        live[transfer.id] = transfer
        transfer.slot = slot
        transfer.state = .running
        begin(transfer)
    }

    /// Records an established connection; called inside libcurl, before it writes the request.
    func connected(_ transfer: Transfer, localPort: UInt16) {
        transfer.noteHandshake()
        transfer.hasConnected = true
        let origin = transfer.origin
        if transfer.isNewConnection {
            early.opened(localPort: localPort, now: loop.now)
            // Input on a TLS connection may be session tickets; input on a plain one is an
            // unrequested response.
            if origin.scheme == .http { _ = sockets.hasUnexpectedInput(localPort: localPort) }
        }
        if let isHTTP2 = transfer.easy?.hasNegotiatedHTTP2 {
            versions.note(origin, isMultiplexing: isHTTP2)
        }
        endScouting(by: transfer)
    }

    /// Handles a response to a transfer that must not have sent anything: this libcurl sends
    /// requests regardless.
    func answeredUnasked(_ transfer: Transfer) {
        early.isPossible = false
        fail(transfer, .protocolError)
    }
}

extension Transfer {
    /// True if libcurl opened a connection for this hop.
    var isNewConnection: Bool { easy.map { $0.long(CURLINFO_NUM_CONNECTS) > 0 } ?? false }

    /// Returns the result of a transfer that sends no request.
    func resultOfConnecting(_ code: CURLcode) -> TransferResult {
        guard hasConnected, code == CURLE_BAD_FUNCTION_ARGUMENT else {
            return .failure(error(for: code))
        }
        var timings = TransferTimings()
        if isNewConnection { timings.hop.connection = .new }
        return .success(timings)
    }
}

extension CurlEasy {
    /// Makes libcurl open a connection without writing a request.
    ///
    /// A date that no calendar has cannot be written as If-Modified-Since: libcurl aborts the
    /// request once the connection is established, before the first byte, and keeps the connection.
    /// Connections of CURLOPT_CONNECT_ONLY are not reused, and aborting in CURLOPT_PREREQFUNCTION
    /// closes those of HTTP/1.1. If a later libcurl wrote the request nevertheless, it would be a
    /// HEAD for the root.
    func sendNothing() {
        set(CURLOPT_TIMECONDITION, Int(CURL_TIMECOND_IFMODSINCE.rawValue))
        set(CURLOPT_TIMEVALUE_LARGE, large: .max)
    }

    /// Whether TLS negotiated HTTP/2 (RFC 7301); nil if unknown.
    ///
    /// Only while the connection belongs to the handle: CURLINFO_TLS_SSL_PTR(3).
    var hasNegotiatedHTTP2: Bool? {
        guard let tls = openSSL else { return nil }
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(tls, &name, &length)
        guard let name else { return false }
        return Array(UnsafeBufferPointer(start: name, count: Int(length))) == Array("h2".utf8)
    }
}
