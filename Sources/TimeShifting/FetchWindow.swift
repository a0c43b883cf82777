import HTTP
import Model

/// The origin's window as the fetches of its segments see it.
///
/// A value without clock.
struct FetchWindow: Equatable {
    /// The number of the first segment in the window.
    var start = 0

    /// True if the failure of a segment's fetch says that the origin has removed the segment.
    ///
    /// A segment in the window may not be there yet, or not on every server of the origin.
    func isGone(_ number: Int, after failure: ProxyFailure) -> Bool {
        number < start && failure.fault == .origin
            && [.notFound, .gone].contains(failure.originStatus)
    }
}
