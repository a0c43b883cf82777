import Posix

/// What a transfer knows of its current hop; replaced as a whole when a hop is sent, so that
/// nothing of one hop counts for the next.
struct HopState {
    /// What the hop expects next.
    enum Phase {
        case head, body
        /// The head of a redirect was received; its body is discarded.
        case redirect
        /// The body is not needed; its rest is discarded.
        case rest
    }

    /// The most body bytes that are read and discarded to keep a connection: more would cost more
    /// than a new one.
    static let mostDiscarded = 64 << 10

    var phase = Phase.head
    var parser = HeadParser()
    /// Bytes of its heads, interim ones included, and of its trailers.
    var fieldBytes = 0
    /// Body bytes that were read and discarded.
    var discarded = 0
    /// Requests that libcurl has sent for it.
    var requests = 0
    /// True if libcurl has received all of its response.
    var isWhole = false
    /// True if libcurl decodes its body.
    let decodes: Bool
    /// The most body bytes that are accepted, after decoding.
    var bodyLimit: Int64
    /// New addresses of the host that libcurl does not have yet.
    let freshAddresses: String?
    /// Why the lookup of its host failed, if it was made over HTTPS.
    var lookupFault: LookupFault?
    /// The address that the policy refused.
    var refusedAddress: String?
    /// True if a connection to an IPv4 address was tried.
    var hasTriedIPv4 = false
    /// The errno with which this machine refused it a socket for lack of something; otherwise 0.
    var shortage: CInt = 0
    /// Its times so far.
    var times = HopTimes()
    let startedAt: Monotonic
    var lastByteAt: Monotonic

    init(of request: TransferRequest, freshAddresses: String? = nil, now: Monotonic) {
        decodes = request.decodesContent
        bodyLimit = request.bodyLimit ?? .max
        self.freshAddresses = freshAddresses
        startedAt = now
        lastByteAt = now
    }

    /// Returns when the wait for the final head ends, and the failure that this is.
    ///
    /// - Parameters:
    ///   - timeouts: the limits of the transfer.
    ///   - interims: the number of interim responses that have come.
    /// - Returns: the time; it may pass without a failure if another interim response comes before.
    func headDue(
        _ timeouts: TransferTimeouts, interims: Int
    ) -> (time: Monotonic, failure: UpstreamError.Kind) {
        let next = lastByteAt + timeouts.firstByte
        guard interims > 0, let head = timeouts.head else { return (next, .firstByteTimeout) }
        let last = startedAt + max(head, timeouts.firstByte)
        return next <= last ? (next, .firstByteTimeout) : (last, .onlyInterim(count: interims))
    }
}
