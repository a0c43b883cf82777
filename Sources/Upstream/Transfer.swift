// One transfer as its starter sees it, and its state between libcurl's callbacks.
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

    /// What a running transfer expects next.
    enum Phase {
        case head, body
        /// The head of a redirect has come; its body is thrown away.
        case redirect
    }

    package let request: TransferRequest
    /// Unique within its client.
    package let id: UInt64
    package internal(set) var state = State.waiting
    package internal(set) var lane: Lane
    // What each piece of a body asks for is stored whole and read whole, so that accesses cannot
    // overlap; inside libcurl checking that costs a hundred instructions.
    /// Body bytes delivered so far, after decoding.
    @exclusivity(unchecked) package internal(set) var bytesReceived: Int64 = 0
    /// Whether delivery is held back by `pause` or a `pause` verdict.
    @exclusivity(unchecked) package internal(set) var isPaused = false

    weak var client: UpstreamClient?
    /// The client's.
    let loop: EventLoop
    @exclusivity(unchecked) var delegate: (any TransferDelegate)?
    var hop: Hop {
        didSet {
            origin = hop.url.origin
        }
    }
    /// The origin of the current hop.
    private(set) var origin: Origin
    @exclusivity(unchecked) var phase = Phase.head
    /// Where the head that came last leads, in the phase of that name.
    var redirect: Redirect?
    /// The way to the current hop's origin.
    var route = OriginRoute.plain
    var easy: CurlEasy?
    /// The set of connections it runs on.
    var multi: CurlMulti?
    var slot: SlotToken?
    var parser = HeadParser()
    var setCookies: [ReceivedCookie] = []
    /// Decided inside libcurl, carried out when it has returned.
    var failure: UpstreamError? {
        didSet {
            isFailing = failure != nil
        }
    }
    /// Whether there is a failure, for those who do not want to know which.
    @exclusivity(unchecked) private(set) var isFailing = false
    /// libcurl holds bytes that were offered and not taken.
    var isHeld = false
    /// The request's body had no bytes when libcurl last asked.
    var isUploadPaused = false
    /// Bytes of the request's body that libcurl has not taken yet.
    var uploadChunk: ArraySlice<UInt8> = []
    /// The connection that was to be used has something to say that nobody asked for.
    var isConnectionSpoilt = false
    /// Such a connection was met: a new one is taken.
    var avoidsKeptConnections = false
    /// Interim responses so far.
    var interims = 0
    /// Bytes of this hop's heads, interim ones included, and of its trailers.
    var fieldBytes = 0
    /// Requests that libcurl has sent for this hop.
    var requestsOfHop = 0
    @exclusivity(unchecked) var isDirty = false
    var hasStarted = false
    /// Addresses of the host that libcurl does not have yet.
    var freshAddresses: String?
    /// Why the lookup of the present hop's host failed, where that was done over HTTPS.
    var lookupFault: LookupFault?
    /// Whether its connection stands; only for one that sends no request.
    var hasConnected = false
    var decodes = false
    /// What of the body is taken at most, in bytes after decoding.
    @exclusivity(unchecked) var bodyLimit = Int64.max
    /// What of `bytesReceived` was measured already.
    var bytesMeasured: Int64 = 0
    /// The connection its request went out on.
    var connection: UpstreamClient.Connection?
    /// Waited once already for the first connection to an origin.
    var hasFollowed = false
    /// Counted as a body that shares an HTTP/2 connection with others.
    var isMultiplexed = false
    var refusedAddress: String?
    var discarded = 0
    var deadline: TimerID?
    /// What the present hop took so far.
    var times = HopTimes()
    let createdAt: Monotonic
    /// Since when a player waits for its slot; of no meaning in other lanes.
    var waitsSince: Monotonic
    var grantedAt: Monotonic
    /// Since when the present hop is wanted.
    var wantedAt: Monotonic
    var hopStartedAt: Monotonic
    @exclusivity(unchecked) var lastByteAt: Monotonic

    init(
        _ request: TransferRequest, id: UInt64, client: UpstreamClient,
        delegate: any TransferDelegate
    ) {
        self.request = request
        self.id = id
        self.client = client
        loop = client.loop
        self.delegate = delegate
        lane = request.lane
        hop = Hop(request)
        origin = request.url.origin
        createdAt = client.loop.now
        waitsSince = createdAt
        grantedAt = createdAt
        wantedAt = createdAt
        hopStartedAt = createdAt
        lastByteAt = createdAt
    }

    /// Ends the transfer; `didFinish` follows with `cancelled` in this round.
    ///
    /// The slot is free and the connection let go at once, or, from inside a delegate call, when
    /// that has returned. A finished transfer is left alone.
    package func cancel() {
        client?.fail(self, UpstreamError(.cancelled, host: host))
    }

    /// Holds delivery back: the origin is slowed down by its full window.
    ///
    /// At most what libcurl has read already waits in memory.
    package func pause() {
        isPaused = true
    }

    /// Takes delivery up again, at the end of this round.
    package func resume() {
        guard isPaused else { return }
        isPaused = false
        client?.resume(self)
    }

    /// Moves the transfer to another lane.
    ///
    /// For one in flight this decides only whether a playback transfer may take its slot.
    package func raise(to lane: Lane) {
        guard state != .finished else { return }
        if self.lane > .playback { waitsSince = loop.now }
        self.lane = lane
        client?.moved(self)
    }

    /// The URL of the current hop, without user information.
    package var currentURL: AbsoluteURL { hop.url.withoutUserinfo }

    /// When the current hop was sent, or its last byte came.
    package var silentSince: Monotonic { lastByteAt }

    /// The host of the current hop, for messages and limits.
    var host: String { origin.host }
}
