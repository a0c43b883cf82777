// Notices of objects that titles have lost.
import Synchronization

/// Tells a listener which titles may have lost objects of their own, or that their pins name.
///
/// Can be used from any thread.
final class RemovalNotices: Sendable {
    private struct State {
        var listener: StoreAdministration.DidRemove?
        /// Titles to tell of once there is a listener: a purge of an earlier run is continued
        /// before anything else starts.
        var untold: Set<UInt64> = []
    }

    private let state = Mutex(State())

    /// Sets the listener, and tells it of what was removed before.
    func follow(_ listener: @escaping StoreAdministration.DidRemove) {
        let untold = state.withLock { state in
            state.listener = listener
            defer { state.untold = [] }
            return state.untold
        }
        if !untold.isEmpty { listener(untold) }
    }

    func tell(_ titles: Set<UInt64>) {
        guard !titles.isEmpty else { return }
        let listener = state.withLock { state in
            if state.listener == nil { state.untold.formUnion(titles) }
            return state.listener
        }
        listener?(titles)
    }
}
