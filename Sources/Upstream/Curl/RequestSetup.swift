import CCurl
import Glibc
import HTTP
import Posix
import URISyntax

/// Turns one hop of a transfer into libcurl's options.
extension CurlEasy {
    /// CURL_HTTP_VERSION_2TLS: HTTP/2 where TLS negotiates it, HTTP/1.1 otherwise.
    private static let http2OverTLS = 4

    /// The setup that transfers share which differ only in URL, fields and timeouts: the usual GET.
    struct Form: Equatable {
        let decodes: Bool
        let isTransparent: Bool
        let route: OriginRoute
        let credentials: String?
        let signature: RequestSignature?

        /// Nil for a transfer that needs a full setup each time.
        init?(_ transfer: Transfer, _ configuration: UpstreamConfiguration) {
            guard transfer.hop.isPlainGet, transfer.request.upload == nil,
                !transfer.request.connectsOnly,
                !transfer.request.usesFreshConnection, !transfer.avoidsKeptConnections,
                configuration.resolve.isEmpty, transfer.hopState.freshAddresses == nil,
                transfer.route.addresses.isEmpty
            else { return nil }
            decodes = transfer.hopState.decodes
            isTransparent = transfer.request.isTransparent
            route = transfer.route
            credentials = transfer.parent?.credentials
            signature = transfer.request.signature
        }
    }

    /// Sets the options of a hop (curl_easy_setopt(3)), except those that it shares with the
    /// previous hop.
    func prepare(_ transfer: Transfer, _ configuration: UpstreamConfiguration) {
        let hop = transfer.hop
        let wanted = Form(transfer, configuration)
        if wanted == nil || wanted != form { setUp(transfer, configuration) }
        form = wanted
        clearFailure()
        set(CURLOPT_URL, (transfer.parentURL ?? hop.url).requestForm)
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, milliseconds(transfer.request.timeouts.connect)))
        if writtenFields != hop.fields {
            setFieldLines(fieldLines(hop, transfer, configuration))
            writtenFields = hop.fields
        }
        setCallbacks(transfer)
        if configuration.dohURL != nil { listenToLookup(of: transfer) }
        // Other routes have separate trust settings.
        if transfer.client?.keptSessions != nil, transfer.route.isPlain {
            resumeWhereverPossible(keepingThoseOf: transfer)
        }
    }

    /// Resets the handle and sets the options that all hops of a form share.
    private func setUp(_ transfer: Transfer, _ configuration: UpstreamConfiguration) {
        reset()
        // Sends the target unchanged: no dot segments resolved, nothing encoded again.
        set(CURLOPT_PATH_AS_IS, flag: true)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, flag: false)
        set(CURLOPT_NOSIGNAL, flag: true)
        // Without it, cancelling during a name lookup blocks the loop until the resolver gives up.
        set(CURLOPT_QUICK_EXIT, flag: true)
        set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, milliseconds(configuration.happyEyeballs))
        set(CURLOPT_DNS_CACHE_TIMEOUT, milliseconds(configuration.dnsCache) / 1000)
        set(CURLOPT_MAXAGE_CONN, milliseconds(configuration.idleAge) / 1000)
        set(CURLOPT_TCP_KEEPALIVE, flag: true)
        set(CURLOPT_TCP_KEEPIDLE, 30)
        set(CURLOPT_TCP_KEEPINTVL, 15)
        let fresh = transfer.hopState.freshAddresses.map { [$0] } ?? []
        let fixed = [transfer.route.resolved(transfer.origin)].compactMap { $0 }
        setResolved(configuration.resolve + fixed + fresh)
        if let url = configuration.dohURL { lookUp(overHTTPS: url) }
        if configuration.usesFastOpen { allowFastOpen() }
        // Early data can be replayed by attackers (RFC 8470 section 4): only for requests without
        // effect.
        if transfer.hop.isPlainGet { allowEarlyData() }
        transfer.route.set(on: handle, caFile: configuration.caFile)
        resumeWhereverPossible()
        set(CURLOPT_HTTP_VERSION, Self.http2OverTLS)
        acceptStations()
        if transfer.request.usesFreshConnection || transfer.avoidsKeptConnections {
            set(CURLOPT_FRESH_CONNECT, flag: true)
        }
        setMethod(transfer.hop, transfer)
        if transfer.request.connectsOnly { sendNothing() }
        if let signature = transfer.request.signature { sign(with: signature) }
        if transfer.hopState.decodes { set(CURLOPT_ACCEPT_ENCODING, "gzip, deflate, br") }
        // A response that is passed on unchanged must not fail because of an unknown content
        // coding.
        if transfer.request.isTransparent { set(CURLOPT_HTTP_CONTENT_DECODING, flag: false) }
    }

    /// Signs requests; user and password are set apart, since keys may contain colons.
    private func sign(with signature: RequestSignature) {
        set(CURLOPT_AWS_SIGV4, signature.scope)
        set(CURLOPT_USERNAME, signature.user)
        set(CURLOPT_PASSWORD, signature.password)
    }

    /// Best effort: without it libcurl or the kernel connects as usual.
    private func allowFastOpen() { _ = sluice_curl_set_long(handle, CURLOPT_TCP_FASTOPEN, 1) }

    private func allowEarlyData() {
        let option = earlyDataOption(version: sluice_curl_version())
        if option != 0 { _ = sluice_curl_set_long(handle, CURLOPT_SSL_OPTIONS, option) }
    }

    private func setMethod(_ hop: Hop, _ transfer: Transfer) {
        if let upload = transfer.request.upload {
            setUpload(upload, of: transfer)
            set(CURLOPT_CUSTOMREQUEST, hop.method.name)
            return
        }
        switch hop.method {
        case .get where hop.isPlainGet:
            set(CURLOPT_HTTPGET, flag: true)
        case .head:
            set(CURLOPT_NOBODY, flag: true)
        default:
            let announcesLength = [.post, .put, .patch].contains(hop.method)
            if !hop.body.isEmpty || announcesLength {
                set(CURLOPT_POST, flag: true)
                setBody(hop.body)
            }
            set(CURLOPT_CUSTOMREQUEST, hop.method.name)
        }
    }

    /// Returns the request's own fields, and those that replace what libcurl would add by itself.
    private func fieldLines(
        _ hop: Hop, _ transfer: Transfer, _ configuration: UpstreamConfiguration
    ) -> [[UInt8]] {
        let isTransparent = transfer.request.isTransparent
        var fields = endToEndFields(hop.fields)
        for name in [FieldName.host, .contentLength, .expect] { fields.remove(name) }
        if !isTransparent { fields.remove(.acceptEncoding) }
        if let credentials = transfer.parent?.credentials {
            fields.append(.proxyAuthorization, credentials)
        }
        if !isTransparent, !fields.contains(.userAgent) {
            fields.append(.userAgent, configuration.userAgent)
        }
        // libcurl before 8.3 sorts Accept-Encoding before Accept for a signature.
        let isSigned = transfer.request.signature != nil
        if !isTransparent, !transfer.hopState.decodes, !isSigned {
            fields.append(.acceptEncoding, "identity")
        }
        // A name with nothing after the colon keeps libcurl from adding its own field; to a GET it
        // adds neither Expect nor Content-Type.
        var lines: [[UInt8]] = []
        // Nor does it leave out fields without a value, which it does not send.
        let mayGetMore = (!hop.isPlainGet || transfer.request.upload != nil) && !isSigned
        if mayGetMore {
            let expects = transfer.request.upload?.expectsContinue == true
            lines.append(Array((expects ? "Expect: 100-continue" : "Expect:").utf8))
        }
        if !fields.contains(.accept) {
            lines.append(Array((isTransparent ? "Accept:" : "Accept: */*").utf8))
        }
        if mayGetMore, !fields.contains(.contentType) {
            lines.append(Array("Content-Type:".utf8))
        }
        for index in 0..<fields.count {
            let (name, value) = fields.bytes(at: index)
            guard Self.isWellFormed(name, value) else { continue }
            lines.append(
                value.isEmpty ? name + [0x3B] : name + [0x3A, 0x20] + Array(value))
        }
        return lines
    }

    /// True if name and value contain nothing that could end the line or begin another.
    private static func isWellFormed(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Bool
    {
        !name.isEmpty && name.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3A && $0 != 0x3B }
            && value.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
    }

    private func milliseconds(_ interval: Interval) -> Int {
        Int(interval.nanoseconds / 1_000_000)
    }
}

/// Returns the bit of CURLOPT_SSL_OPTIONS for early data (RFC 8446 section 2.3) if that libcurl
/// supports it; otherwise 0.
func earlyDataOption(version: UInt32) -> Int { sluice_curl_early_data(version) }
