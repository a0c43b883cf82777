package import URISyntax

/// What requests to origins have cost, by origin and by lane.
package struct TransferFigures: Sendable {
    package private(set) var origins = OriginTable()
    /// Requests on a connection of their own.
    package private(set) var newConnections: Int64 = 0
    /// Requests on a connection that was there.
    package private(set) var reusedConnections: Int64 = 0
    package private(set) var fullHandshakes: Int64 = 0
    package private(set) var resumedHandshakes: Int64 = 0
    /// By lane, then by phase.
    private var times = Array(
        repeating: PhaseCounts(), count: Lane.allCases.count * TransferPhase.allCases.count)

    package init() {}

    /// The times of a phase of requests in a lane.
    package func counts(of phase: TransferPhase, in lane: Lane) -> PhaseCounts {
        times[Self.place(lane, phase)]
    }

    private static func place(_ lane: Lane, _ phase: TransferPhase) -> Int {
        lane.rawValue * TransferPhase.allCases.count + phase.rawValue
    }

    /// Takes note of a request that is over.
    package mutating func note(
        _ hop: HopTimes, to origin: Origin, in lane: Lane, bytes: Int64, isError: Bool
    ) {
        switch hop.connection {
        case .new: newConnections += 1
        case .reused: reusedConnections += 1
        case nil: break
        }
        switch hop.handshake {
        case .full: fullHandshakes += 1
        case .resumed: resumedHandshakes += 1
        case nil: break
        }
        for phase in TransferPhase.allCases {
            if let time = hop[phase] { times[Self.place(lane, phase)].add(time) }
        }
        origins.note(hop, to: origin, bytes: bytes, isError: isError)
    }
}

/// The figures of the clients of one loop; used on that loop only.
final class TransferLedger {
    var figures = TransferFigures()
}
