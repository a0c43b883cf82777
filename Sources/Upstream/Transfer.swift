// One transfer as its caller sees it, and its state between libcurl's callbacks.
import CCurl
import HTTP
package import Posix
import Reactor
package import URISyntax

/// A transfer from `UpstreamClient.start` to `didFinish`; used on the upstream loop only.
///
/// | state | left by |
/// |---|---|
/// | waiting | admission: running; `cancel`, shutdown: finished |
/// | running | end of the last hop, a failure, `cancel`, preemption: finished; a redirect to a host that is at its limit: waiting |
/// | finished | never; `didFinish` follows in the same round |
package final class Transfer {
    package enum State: Sendable, Hashable {
        case waiting, running, finished
    }

    package let request: TransferRequest
    /// Unique within its client.
    package let id: UInt64
    // The properties used for each field and each piece of a body are read and written as a whole,
    // or changed by calls that do not re-enter, so that accesses cannot overlap; the check would
    // cost a hundred instructions each inside libcurl.
    @exclusivity(unchecked) package internal(set) var state = State.waiting
    package internal(set) var lane: Lane
    /// True if it precedes all others of the prefetch lane while it waits there.
    private(set) var goesFirst: Bool
    /// True if it is for a longer window: it is sent to a host with one connection, too.
    private(set) var fillsWindow: Bool
    /// Body bytes delivered so far, after decoding.
    @exclusivity(unchecked) package internal(set) var bytesReceived: Int64 = 0
    /// True while delivery is stopped by `pause`.
    @exclusivity(unchecked) package internal(set) var isPaused = false

    weak var client: UpstreamClient?
    /// The client's loop.
    let loop: EventLoop
    @exclusivity(unchecked) var delegate: (any TransferDelegate)?
    var hop: Hop {
        didSet { findWay() }
    }
    /// The parent that the current hop is sent to; nil for the origin itself.
    package private(set) var parent: Parent?
    /// The URL that the parent is asked with.
    private(set) var parentURL: AbsoluteURL?
    /// Whom the current hop is sent to: the origin of its URL, or a parent.
    private(set) var origin: Origin
    private var leavesParent = false
    /// The most transfers to the host of the current hop by a limit of its own; 0 without one.
    private(set) var hostLimit: Int
    private let requestedHostLimit: Int
    /// What is known of the hop that was sent last.
    @exclusivity(unchecked) var hopState: HopState
    /// The target of the last head, in the phase of that name.
    var redirect: Redirect?
    /// The route to the current hop's origin.
    var route = OriginRoute.plain
    var easy: CurlEasy?
    /// The set of connections it runs on.
    @exclusivity(unchecked) var multi: CurlMulti?
    var slot: SlotToken?
    /// The longest pause of a body without an end; nil for other bodies.
    private(set) var endlessSilence: Interval?
    @exclusivity(unchecked) var setCookies: [ReceivedCookie] = []
    /// Set inside libcurl, handled after it has returned.
    var failure: UpstreamError? {
        didSet {
            isFailing = failure != nil
        }
    }
    /// True if there is a failure; cheaper to check than `failure`.
    @exclusivity(unchecked) private(set) var isFailing = false
    /// True while libcurl holds bytes that were offered and not consumed.
    @exclusivity(unchecked) var isReceivePaused = false
    /// True if the request's body had no bytes when libcurl last asked.
    var isUploadPaused = false
    /// Bytes of the request's body that libcurl has not taken yet.
    var uploadChunk: ArraySlice<UInt8> = []
    /// True if the connection about to be reused has unrequested input.
    var isConnectionSpoilt = false
    /// True once such a connection was met, or one that had ended: the next one must be new.
    var avoidsKeptConnections = false
    /// Interim responses so far.
    @exclusivity(unchecked) var interims = 0
    /// True if it failed since nothing was received for too long.
    var hasTimedOut = false
    /// True once a request was sent again because its kept connection had ended.
    var hasBeenRepeated = false
    @exclusivity(unchecked) var isDirty = false
    var hasStarted = false
    /// True once its connection is established; only for a transfer that sends no request.
    var hasConnected = false
    /// The length of its body as it is delivered, where windows are bounded; nil if it is not
    /// known.
    var bodyLength: Int64?
    /// How many bytes have been delivered where the end of its body begins (`BodyBound`).
    @exclusivity(unchecked) var endBegins = Int64.max
    /// How many of `bytesReceived` were measured already.
    var bytesMeasured: Int64 = 0
    /// The connection that its request was sent on.
    var connection: UpstreamClient.Connection?
    /// True once it has waited for the first connection to an origin.
    var hasFollowed = false
    /// True if it is counted as a body on a shared HTTP/2 connection.
    var isMultiplexed = false
    var deadline: TimerID?
    let createdAt: Monotonic
    /// Since when a player waits for its slot; meaningless in other lanes.
    var waitsSince: Monotonic
    var grantedAt: Monotonic
    /// When the current hop was requested.
    var wantedAt: Monotonic

    init(
        _ request: TransferRequest, id: UInt64, client: UpstreamClient,
        delegate: (any TransferDelegate)?
    ) {
        self.request = request
        self.id = id
        self.client = client
        loop = client.loop
        self.delegate = delegate
        lane = request.lane
        goesFirst = request.goesFirst
        fillsWindow = request.fillsWindow
        hop = Hop(request)
        origin = request.url.origin
        createdAt = client.loop.now
        waitsSince = createdAt
        grantedAt = createdAt
        wantedAt = createdAt
        hopState = HopState(of: request, now: createdAt)
        requestedHostLimit = client.configuration.hostLimits.limit(of: origin)
        hostLimit = requestedHostLimit
        if request.parent != nil { findWay() }
    }

    /// Sends the hops to come to the origins themselves.
    package func leaveParent() { leavesParent = true }

    private func findWay() {
        parentURL = nil
        if let way = request.parent, !leavesParent {
            parentURL = way.parent.url(for: hop.url, role: way.role)
        }
        parent = parentURL == nil ? nil : request.parent?.parent
        origin = parent?.origin ?? hop.url.origin
        hostLimit = client?.configuration.hostLimits.limit(of: origin) ?? 0
    }

    /// Ends the transfer; `didFinish` follows with `cancelled` in this round.
    ///
    /// Slot and connection are released immediately, or, from inside a delegate call, when that has
    /// returned. Has no effect on a finished transfer.
    package func cancel() {
        client?.fail(self, .cancelled)
    }

    /// Ends the transfer, whose body is not needed any more; delivers no further byte.
    ///
    /// The rest of a short body is read before, for half a second at most, so that the connection
    /// can be used again. Until then it keeps its slot: on an account with one connection, another
    /// request would be refused. `didFinish` follows with success if the rest was read, otherwise
    /// with `cancelled`.
    package func dismiss() {
        client?.dismiss(self)
    }

    /// Pauses delivery: the full receive window then stops the origin.
    ///
    /// At most what libcurl has already read stays in memory.
    package func pause() {
        isPaused = true
    }

    /// Resumes delivery, at the end of this round.
    package func resume() {
        guard isPaused else { return }
        isPaused = false
        client?.resume(self)
    }

    /// Runs on as a transfer without an end: it holds no slot, but counts against the limit of its
    /// host.
    ///
    /// - Parameter silence: the longest time without a byte.
    package func goesOnWithoutEnd(silence: Interval) {
        endlessSilence = silence
        client?.exempt(self)
    }

    /// Lowers the most body bytes that are accepted, after decoding; more end the transfer.
    package func limitBody(to bytes: Int64) {
        hopState.bodyLimit = min(hopState.bodyLimit, bytes)
    }

    /// Moves the transfer to another lane.
    ///
    /// For a running transfer, this only decides whether it may be preempted.
    package func raise(to lane: Lane) {
        guard state != .finished else { return }
        if self.lane > .playback { waitsSince = loop.now }
        self.lane = lane
        client?.moved(self)
    }

    /// Has the transfer precede all others of the prefetch lane whenever it waits there.
    package func goFirst() {
        guard state != .finished, !goesFirst else { return }
        goesFirst = true
        client?.queue.putFirst(id)
        // The limit of look-ahead may have held it back.
        client?.scheduleRoundEnd()
    }

    /// Has the transfer sent to a host with one connection, too.
    package func fillWindow() {
        guard state != .finished, !fillsWindow else { return }
        fillsWindow = true
        client?.queue.noteWindow(id)
        client?.scheduleRoundEnd()
    }

    /// The URL of the current hop, without user information.
    package var currentURL: AbsoluteURL { hop.url }

    /// When the current hop was sent.
    package var sentAt: Monotonic { hopState.startedAt }

    /// When the current hop was sent, or its last byte received.
    package var silentSince: Monotonic { hopState.lastByteAt }

    /// The host of the current hop, for messages and limits.
    package var host: String { origin.host }

    /// The host that the request was sent to first; another one after a redirect.
    package var firstHost: String { request.parent == nil ? request.url.origin.host : host }

    /// The most transfers to that host by a limit of its own; 0 without one.
    var firstHostLimit: Int { request.parent == nil ? requestedHostLimit : hostLimit }

    /// True if a host may count it among the transfers of an account: it sends the response, or has
    /// redirected the request.
    package func concerns(_ host: String) -> Bool { self.host == host || firstHost == host }
}
