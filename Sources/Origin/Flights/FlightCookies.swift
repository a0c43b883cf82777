import HLS
import Model
import Posix
import Upstream

/// What the cookies of a flight mean.
struct FlightCookies {
    /// The most cookies of a response that are stored: as many as a jar holds.
    ///
    /// A head of 256 KiB has room for 17,000, each of which is compared with all in the jar. The
    /// last ones count.
    static let mostReceived = 300

    /// True once responses have changed the cookies of the session.
    private(set) var areNew = false
    /// True once one was sent or received by which the origin may recognize the viewer.
    private(set) var mayIdentifyViewer = false
    /// When the cookies of the last request were looked up; nil before the first one.
    var readAt: Monotonic?
    /// False for what a playlist names as something else, whose cookies mark nothing.
    private let mayBringPlaylist: Bool

    init(of resource: Resource) {
        mayBringPlaylist = resource.role == nil || resource.role == .playlist
    }

    /// Notes the cookies that a hop set.
    ///
    /// - Parameters:
    ///   - received: the cookies.
    ///   - areNew: whether they changed the jar of the session.
    ///   - now: the time, for cookies of responses without one; expired cookies are removals.
    mutating func noteReceived(_ received: [ReceivedCookie], areNew: Bool, now: WallTime) {
        if areNew { self.areNew = true }
        guard mayBringPlaylist, !mayIdentifyViewer else { return }
        mayIdentifyViewer = received.contains {
            ViewerCookie.isSet(by: $0.value, from: $0.url, now: $0.date ?? now)
        }
    }

    /// Notes the Cookie field of a request.
    mutating func noteSent(_ field: String?) {
        guard let field, mayBringPlaylist, !mayIdentifyViewer else { return }
        mayIdentifyViewer = ViewerCookie.isAny(in: field)
    }
}
