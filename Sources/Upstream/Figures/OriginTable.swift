package import HTTP
import Numbers
package import Posix
package import URISyntax

/// The costs of requests to each origin; a new origin replaces the least recently used one.
package struct OriginTable: Sendable {
    /// One origin.
    package struct Row: Sendable {
        /// Finished requests, redirected and failed ones included.
        package fileprivate(set) var requests = 0
        /// Requests that failed, were truncated or got a 5xx status.
        package fileprivate(set) var errors = 0
        /// Body bytes received.
        package fileprivate(set) var bytes: Int64 = 0
        package fileprivate(set) var connections = ConnectionCounts()
        /// The version of the last response.
        package fileprivate(set) var version: HTTPVersion?
        /// The address of the last request.
        package fileprivate(set) var address: SocketAddress?
        /// By `TransferPhase.rawValue`.
        private var phases = Array(
            repeating: PhaseHistogram(), count: TransferPhase.allCases.count)
        /// Grows with each request to any origin.
        fileprivate var lastUse: UInt64 = 0

        /// The times of a phase.
        package func histogram(of phase: TransferPhase) -> PhaseHistogram {
            phases[phase.rawValue]
        }

        /// The share of requests on a reused connection; nil before the first one.
        package var reusedPercent: Double? {
            Self.percent(connections.reused, of: connections.new + connections.reused)
        }

        /// The share of TLS handshakes that resumed a session; nil before the first one.
        package var resumedPercent: Double? {
            Self.percent(connections.resumed, of: connections.full + connections.resumed)
        }

        private static func percent(_ part: Int, of whole: Int) -> Double? {
            whole > 0 ? 100 * Double(part) / Double(whole) : nil
        }

        fileprivate mutating func note(
            _ hop: HopTimes, bytes received: Int64, isError: Bool, isRequest: Bool, use: UInt64
        ) {
            lastUse = use
            if isRequest { requests += 1 }
            if isError { errors += 1 }
            bytes = bytes.addingSaturated(max(0, received))
            connections.note(hop)
            version = hop.version ?? version
            address = hop.address ?? address
            for phase in TransferPhase.allCases {
                if let time = hop[phase] { phases[phase.rawValue].add(time) }
            }
        }
    }

    /// The most origins that are remembered.
    package let capacity: Int
    /// The number of origins that were replaced; one that comes back counts from 0 again.
    package private(set) var replaced = 0
    private var rows: [Origin: Row] = [:]
    private var uses: UInt64 = 0

    /// - Parameter capacity: the most origins that are remembered, 1 or more.
    package init(capacity: Int = 256) {
        self.capacity = max(1, capacity)
    }

    package var count: Int { rows.count }

    package subscript(origin: Origin) -> Row? { rows[origin] }

    /// All origins, the most recently used first.
    package var latestFirst: [(origin: Origin, row: Row)] {
        rows.sorted { $0.value.lastUse > $1.value.lastUse }.map { ($0.key, $0.value) }
    }

    /// Records a finished request, or a connection that was opened before any request needed it.
    package mutating func note(
        _ hop: HopTimes, to origin: Origin, bytes: Int64, isError: Bool, isRequest: Bool = true
    ) {
        uses += 1
        if rows.count >= capacity, rows[origin] == nil { forgetOldest() }
        rows[origin, default: Row()].note(
            hop, bytes: bytes, isError: isError, isRequest: isRequest, use: uses)
    }

    private mutating func forgetOldest() {
        guard let oldest = rows.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return }
        rows[oldest.key] = nil
        replaced += 1
    }
}

/// The connections that carried requests, and how TLS began on the new ones.
package struct ConnectionCounts: Sendable, Hashable {
    /// Requests on a new connection.
    package private(set) var new = 0
    /// Requests on a reused connection.
    package private(set) var reused = 0
    /// Handshakes with certificate and key exchange.
    package private(set) var full = 0
    /// Handshakes that resumed a session.
    package private(set) var resumed = 0
    /// Connections that were ended since their peer acknowledged nothing any more.
    package var lost = 0

    mutating func note(_ hop: HopTimes) {
        switch hop.connection {
        case .new: new += 1
        case .reused: reused += 1
        case nil: break
        }
        switch hop.handshake {
        case .full: full += 1
        case .resumed: resumed += 1
        case nil: break
        }
    }
}
