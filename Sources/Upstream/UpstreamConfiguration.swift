// The limits and options of the upstream client in one table.
package import Posix

/// Settings of an `UpstreamClient`.
///
/// `normalised` brings every value into its range.
///
/// | setting | unit | default | range | why |
/// |---|---|---|---|---|
/// | slots | transfers | 32 | 1...256 | concurrent requests to origins |
/// | expressCap | transfers | 16 | 1...64 | playlists and keys besides the slots |
/// | perHostLimit | transfers | 0 (none) | 0...256 | for origins that count connections |
/// | queueLimit | transfers | 4096 | 1...65536 | limits waiters, of players and ahead each |
/// | slotWait | time | 30 s | 10 ms...3600 s | ends the wait of a player for a slot |
/// | maxRedirects | hops | 10 | 0...50 | ends a redirect loop |
/// | maxDecodedBytes | bytes | 64 Mi | 64 Ki...4 Gi | ends a decompression bomb |
/// | maxHeadBytes | bytes | 256 Ki | 8 Ki...1 Mi | bounds one response head |
/// | receiveBuffer | bytes | 128 Ki | 16 Ki...512 Ki | one socket read; held per handle, halved beyond 8 |
/// | bulkBytes | bytes | 64 Ki | 0...max | the rest of a longer body is read after all heads |
/// | idleConnections | connections | 64 | 1...1024 | kept open for reuse |
/// | idleAge | time | 60 s | 1...600 s | older idle connections are not reused |
/// | dnsCache | time | 60 s | 0...3600 s | how long looked-up addresses are reused |
/// | happyEyeballs | time | 200 ms | 10...2000 ms | head start of IPv6 (RFC 8305) |
package struct UpstreamConfiguration: Sendable {
    package var slots = 32
    package var expressCap = 16
    package var perHostLimit = 0
    /// The limits of single hosts, in place of `perHostLimit`; 256 at most each.
    package var hostLimits = HostLimits()
    package var queueLimit = 4096
    /// Four times what most players wait for a segment; the others would wait forever.
    ///
    /// Not for requests that the origin will hold.
    package var slotWait: Interval = .seconds(30)
    /// True if command-line options change the number of transfers: messages name them.
    package var hasSlotOptions = true
    package var maxRedirects = 10
    package var maxDecodedBytes: Int64 = 64 << 20
    package var maxHeadBytes = 256 << 10
    package var receiveBuffer = 128 << 10
    package var bulkBytes: Int64 = 64 << 10
    package var idleConnections = 64
    package var idleAge: Interval = .seconds(60)
    package var dnsCache: Interval = .seconds(60)
    package var happyEyeballs: Interval = .milliseconds(200)
    package var addressPolicy = AddressPolicy()
    /// The origins that may be fetched from; shared by all clients with copies of these settings.
    package var onlyOrigins = OnlyOriginsInForce()
    /// A PEM file of trusted certificates that replaces the system's.
    package var caFile: String?
    /// The route to each origin.
    package var routes = OriginRoutes()
    /// Sent if the request's fields have no User-Agent.
    package var userAgent = "sluice"
    /// Fixed addresses, each `host:port:address[,address]...` (CURLOPT_RESOLVE(3)); the address
    /// policy applies to them too.
    package var resolve: [String] = []

    /// The URL of a server that looks names up over HTTPS; nil for the system's resolver.
    package var dohURL: String?
    /// Looks names in use up again; for the first lookup libcurl uses the system's resolver.
    package var lookUp: NameLookup = systemAddresses
    /// True if the first bytes may be sent with the connection request (TCP Fast Open).
    package var usesFastOpen = false
    /// True if packets to origins are marked by lane (RFC 2474).
    package var marksPackets = false
    /// When transfers keep the queue of the line short.
    package var yields = YieldUse.off
    /// Whether connections to origins may use several network paths.
    package var multipath = MultipathUse.off

    /// The file of TLS sessions that outlive the daemon; nil keeps none.
    package var sessionFile: String?

    package init() {}

    /// The most slots besides `slots`, which keep one host from starving the others.
    package var extraSlots: Int { AdmissionQueue.Limits(slots: slots).extraSlots }

    /// The same settings with every number clamped to its range.
    package var normalised: UpstreamConfiguration {
        var copy = self
        copy.slots = slots.clamped(1, 256)
        copy.expressCap = expressCap.clamped(1, 64)
        copy.perHostLimit = perHostLimit.clamped(0, 256)
        copy.queueLimit = queueLimit.clamped(1, 65_536)
        copy.slotWait = slotWait.clamped(.milliseconds(10), .seconds(3600))
        copy.maxRedirects = maxRedirects.clamped(0, 50)
        copy.maxDecodedBytes = maxDecodedBytes.clamped(64 << 10, 4 << 30)
        copy.maxHeadBytes = maxHeadBytes.clamped(8 << 10, 1 << 20)
        copy.receiveBuffer = receiveBuffer.clamped(16 << 10, 512 << 10)
        copy.bulkBytes = max(0, bulkBytes)
        copy.idleConnections = idleConnections.clamped(1, 1024)
        copy.idleAge = idleAge.clamped(.seconds(1), .seconds(600))
        copy.dnsCache = dnsCache.clamped(.zero, .seconds(3600))
        copy.happyEyeballs = happyEyeballs.clamped(.milliseconds(10), .milliseconds(2000))
        return copy
    }
}

extension Comparable {
    fileprivate func clamped(_ low: Self, _ high: Self) -> Self { max(low, min(high, self)) }
}
