package import URISyntax

/// The costs of requests to origins, by origin and by lane.
package struct TransferFigures: Sendable {
    package private(set) var origins = OriginTable()
    package internal(set) var connections = ConnectionCounts()
    /// The origins whose transfers have bounded receive windows now.
    package internal(set) var yields: [Origin: YieldState] = [:]
    /// The hosts that get one transfer at a time since they refused a second one.
    package internal(set) var singleHosts: Set<String> = []
    /// By lane, then by phase.
    private var times = Array(
        repeating: PhaseCounts(), count: Lane.allCases.count * TransferPhase.allCases.count)

    package init() {}

    /// Returns the times of a phase of requests in a lane.
    package func counts(of phase: TransferPhase, in lane: Lane) -> PhaseCounts {
        times[Self.place(lane, phase)]
    }

    private static func place(_ lane: Lane, _ phase: TransferPhase) -> Int {
        lane.rawValue * TransferPhase.allCases.count + phase.rawValue
    }

    /// Records a finished request, or a connection that was opened before any request needed it.
    package mutating func note(
        _ hop: HopTimes, to origin: Origin, in lane: Lane, bytes: Int64, isError: Bool,
        isRequest: Bool = true
    ) {
        connections.note(hop)
        for phase in TransferPhase.allCases {
            if let time = hop[phase] { times[Self.place(lane, phase)].add(time) }
        }
        origins.note(hop, to: origin, bytes: bytes, isError: isError, isRequest: isRequest)
    }
}
