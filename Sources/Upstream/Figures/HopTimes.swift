// The times of one request to one origin: pure values, made from libcurl's marks.
package import HTTP
import Numbers
package import Posix

/// A phase of a request to an origin.
package enum TransferPhase: Int, Sendable, CaseIterable {
    /// Waiting until the request may be sent: for a slot, or for another request's handshake.
    case slot
    /// Looking up the host's addresses.
    case name
    /// Opening the TCP connection.
    case connect
    /// The TLS handshake.
    case tls
    /// From the request on its way to the first byte of the response.
    case firstByte
    /// From the first byte of the response to its last one.
    case lastByte

    /// A stored array, since every request iterates over it.
    package static let allCases: [TransferPhase] = [
        .slot, .name, .connect, .tls, .firstByte, .lastByte,
    ]

    /// The name in logs, JSON and metrics.
    package var name: String {
        switch self {
        case .slot: "slot"
        case .name: "name"
        case .connect: "connect"
        case .tls: "tls"
        case .firstByte: "first_byte"
        case .lastByte: "last_byte"
        }
    }
}

/// The times and the connection of one request of a transfer; a redirect is followed by another
/// one.
///
/// Times are in microseconds, up to an hour; a phase that did not happen has none.
package struct HopTimes: Sendable, Hashable {
    /// The kind of connection that carried a request.
    package enum Connection: String, Sendable, Hashable {
        case new, reused
    }

    /// How TLS began on a new connection (RFC 8446 section 2.2).
    package enum Handshake: String, Sendable, Hashable {
        case full, resumed
    }

    /// The longest time that can be represented, in microseconds.
    package static let longest: UInt32 = 3_600_000_000
    private static let absent = UInt32.max

    /// By `TransferPhase.rawValue`.
    private var values = SIMD8<UInt32>(repeating: absent)
    /// The peer's address; nil without a connection.
    package var address: SocketAddress?
    /// The version of the response; nil without one.
    package var version: HTTPVersion?
    /// Nil if no request was sent.
    package var connection: Connection?
    /// Nil on a reused connection and without TLS.
    package var handshake: Handshake?
    /// How often the request was sent: libcurl repeats it once if a kept connection was closed.
    package var tries = 0

    package init() {}

    /// The time of a phase in microseconds; nil if it did not happen.
    package subscript(phase: TransferPhase) -> UInt32? {
        get {
            let value = values[phase.rawValue]
            return value == Self.absent ? nil : value
        }
        set { values[phase.rawValue] = newValue.map { min($0, Self.longest) } ?? Self.absent }
    }
}

extension HopTimes {
    /// libcurl's marks of a request: microseconds since it was added, cumulative, and 0 for what
    /// has not happened (curl_easy_getinfo(3)).
    package struct Marks: Sendable {
        /// From the request to its start in libcurl.
        package var slot: Int64 = 0
        package var name: Int64 = 0
        package var connect: Int64 = 0
        package var tls: Int64 = 0
        /// When the request was about to be sent.
        package var sending: Int64 = 0
        package var firstByte: Int64 = 0
        package var end: Int64 = 0

        package init() {}
    }

    /// Sets the phases up to the first byte.
    ///
    /// On a reused connection libcurl reports marks of phases that it skipped: they are ignored.
    package mutating func take(_ marks: Marks, isNew: Bool) {
        self[.slot] = Self.bounded(marks.slot)
        if isNew {
            self[.name] = Self.phase(from: 0, to: marks.name)
            self[.connect] = Self.phase(from: marks.name, to: marks.connect)
            self[.tls] = Self.phase(from: marks.connect, to: marks.tls)
        }
        self[.firstByte] = Self.phase(from: marks.sending, to: marks.firstByte)
    }

    /// Sets the time of the body.
    package mutating func takeEnd(_ marks: Marks) {
        guard marks.firstByte > 0 else { return }
        self[.lastByte] = Self.phase(from: marks.firstByte, to: marks.end)
    }

    private static func phase(from start: Int64, to end: Int64) -> UInt32? {
        end > 0 ? bounded(end.subtractingSaturated(start)) : nil
    }

    private static func bounded(_ microseconds: Int64) -> UInt32 {
        UInt32(max(0, min(microseconds, Int64(longest))))
    }
}
