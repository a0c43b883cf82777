import HTTP
package import Model
package import Posix
package import Upstream

/// A finished fetch whose resource no player has requested yet.
package struct AheadFetch: Sendable {
    package let resource: Resource
    /// The time since its last request.
    package let took: Interval
    /// Body bytes received.
    package let bytes: Int64
    /// The status of the last response; nil without one.
    package let status: Int64?
    package let report: TransferTrace.Report?

    init(_ flight: Flight, now: Monotonic) {
        resource = flight.resource
        took = now - flight.requestedAt
        bytes = flight.position.map { max(0, $0 - flight.machine.wanted.start) } ?? 0
        status = flight.response.map { Int64($0.status.rawValue) }
        report = flight.trace.report
    }
}
