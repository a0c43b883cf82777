import HLS
package import Model
import Synchronization

extension TimeShiftTable {
    /// Returns the `window` member of a report.
    ///
    /// - Returns: an object; nil unless the resource is a playlist with a time shift window in
    ///   memory.
    package func report(on resource: Resource) -> JSONValue? {
        guard resource.session.isShifted,
            let list = known(resource.url, of: resource.session)
        else { return nil }
        return list.state.withLock { state in
            guard !state.isOther, let first = state.shift.segments.first else { return nil }
            let own = state.shift.segments.count { $0.number < state.shift.windowStart }
            return .object([
                .init("first", .number(Int64(first.number))),
                .init("segments", .number(Int64(state.shift.segments.count))),
                .init("behind-origin", .number(Int64(own))),
                .init("missing", .number(Int64(state.missing.count))),
                .init("epoch", .number(Int64(state.shift.epoch))),
                .init("ended", .truth(state.shift.isEnded)),
            ])
        }
    }
}
