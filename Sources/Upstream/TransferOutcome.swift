import CCurl
import Glibc
import HTTP
import Posix
import URISyntax

/// libcurl's data about a hop, converted: head, timings, failure.
extension Transfer {
    /// Returns the redirect of the head that was just received.
    func redirect(to url: AbsoluteURL) -> Redirect {
        let isCrossOrigin = hop.url.origin != url.origin
        return Redirect(
            status: hopState.parser.status, from: hop.url, to: url,
            setCookies: setCookies.suffix(hopState.parser.fields.count(of: .setCookie)),
            isCrossOrigin: isCrossOrigin, hasLeftOrigin: hop.hasLeftOrigin || isCrossOrigin)
    }

    /// Returns the head that was just received, for the delegate.
    func head() -> TransferHead {
        let status = hopState.parser.status
        var fields = hopState.parser.fields
        var coding: String?
        if hopState.decodes, let found = fields.combined(.contentEncoding),
            found.lowercased() != "identity", !status.neverHasContent, hop.method != .head
        {
            coding = found
            fields.remove(.contentEncoding)
            fields.remove(.contentLength)
        }
        return TransferHead(
            status: status, fields: fields, decodedCoding: coding, finalURL: hop.url,
            setCookies: setCookies, provesItsEnd: provesItsEnd)
    }

    /// True if the end of the body is recognisable otherwise than by the end of the connection
    /// (RFC 9112 section 6.3).
    var provesItsEnd: Bool {
        hopState.parser.version.major >= 2 || hopState.parser.status.neverHasContent
            || hop.method == .head || hopState.parser.fields.contains(.contentLength)
            || hopState.parser.isChunked
    }

    /// True if the body has a transfer coding that should be decoded but cannot be: a registered
    /// one (RFC 9112 section 7), which was not requested.
    ///
    /// Other names are ignored: the body then ends with the connection (section 6.3).
    var hasUnreadableCoding: Bool {
        request.isTransparent && hopState.parser.version.major < 2
            && hopState.parser.fields.listMembers(.transferEncoding).contains { coding in
                let name = ASCII.lowercased(coding.prefix { $0 != ";" && $0 != " " })
                return ["gzip", "x-gzip", "deflate", "compress", "x-compress"].contains(name)
            }
    }

    /// True once the head of a response without content was received: it ends by itself shortly.
    var isOnlyHead: Bool {
        hopState.phase == .body
            && (hop.method == .head || hopState.parser.status.neverHasContent)
    }

    /// True if the rest of the body is worth its connection: it is not known to be long, and does
    /// not end only with the connection.
    var hasShortRest: Bool {
        guard hopState.phase == .body, request.upload == nil, endlessSilence == nil, !isPaused,
            !isReceivePaused, provesItsEnd,
            !hopState.parser.fields.hasConnectionOption("close")
        else { return false }
        let rest = (head().contentLength ?? 0) - bytesReceived
        return rest <= Int64(HopState.mostDiscarded)
    }

    /// True if the body is a stream of server-sent events, which only mounts pass on.
    var sendsEvents: Bool {
        request.isTransparent
            && MediaType.parse(hopState.parser.fields)?.essence == "text/event-stream"
    }

    func peer() -> SocketAddress? {
        guard let easy, let host = easy.string(CURLINFO_PRIMARY_IP) else { return nil }
        return SocketAddress(
            host: host, port: UInt16(truncatingIfNeeded: easy.long(CURLINFO_PRIMARY_PORT)))
    }

    func timings(at now: Monotonic) -> TransferTimings {
        var timings = TransferTimings()
        timings.hop = hopState.times
        timings.total = now - grantedAt
        timings.bytes = bytesReceived
        guard let easy else { return timings }
        let firstByte = easy.microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        timings.firstByte = Interval(nanoseconds: firstByte * 1000)
        return timings
    }

    /// Returns the failure for a libcurl error (libcurl-errors(3)).
    func error(for code: CURLcode) -> UpstreamError {
        if let address = hopState.refusedAddress,
            code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK
        {
            return UpstreamError(.addressRefused(address), host: host)
        }
        if let failure = shortageFailure(for: code) { return failure }
        if let failure = proxyFailure(for: code) { return failure }
        let kind = kind(of: code)
        switch kind {
        case .headTooLarge:
            // An overlong line, of which libcurl gives up before its end.
            return UpstreamError(kind, host: host, detail: "libcurl takes no line of 100 kB")
        case .resolve:
            return lookupFailure()
        case .connectTimeout:
            return lateConnection()
        case .reset where isCertificateRefused:
            return tlsFailure(for: code)
        case .tls:
            // OpenSSL's message is what the operator needs; it names certificates, not secrets.
            return tlsFailure(for: code)
        case .other:
            return UpstreamError(
                kind, host: host, detail: String(cString: curl_easy_strerror(code)))
        default:
            var error = UpstreamError(kind, host: host)
            error.systemCode = CInt(truncatingIfNeeded: easy?.long(CURLINFO_OS_ERRNO) ?? 0)
            if kind == .connect { nameCause(of: &error) }
            return error
        }
    }

    /// Says why there is no connection, if the system told it (connect(2)).
    private func nameCause(of error: inout UpstreamError) {
        switch error.systemCode {
        case 0: break
        case ECONNREFUSED:
            error.message = "\(host) refused the connection to its port \(origin.port)"
            error.advice = "check that the server runs, and the port"
        case EHOSTUNREACH, ENETUNREACH:
            error.message = "\(host) cannot be reached from this machine"
            error.advice = "check the network"
        default: error.message += ": " + String(cString: strerror(error.systemCode))
        }
    }

    /// Returns the failure for a connection that was not established in time.
    ///
    /// libcurl has one error for that, whichever of lookup and handshakes took too long.
    private func lateConnection() -> UpstreamError {
        var error = UpstreamError(.connectTimeout, host: host)
        guard let easy else { return error }
        let isLookedUp = easy.microseconds(CURLINFO_NAMELOOKUP_TIME_T) > 0
        // libcurl 7.88 sets the mark of the connection only after the handshake.
        let isConnected =
            easy.microseconds(CURLINFO_CONNECT_TIME_T) > 0 || easy.long(CURLINFO_LOCAL_PORT) > 0
        // Lookup and connection of a route through a proxy are those of the proxy.
        if route.proxy != nil, !hasTunnel {
            return silenceOfProxy(isLookedUp: isLookedUp, isConnected: isConnected)
        }
        guard isLookedUp else { return lookupFailure(isLate: true) }
        if isConnected, origin.scheme == .https,
            easy.microseconds(CURLINFO_APPCONNECT_TIME_T) == 0
        {
            error.message =
                "\(host) accepted a connection and did not answer the TLS handshake in time"
        }
        return error
    }

    /// True if a head or trailers are expected: libcurl may be inside a line of either.
    private var isReadingFields: Bool { hasNoHead || hopState.parser.isChunked }

    private func kind(of code: CURLcode) -> UpstreamError.Kind {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: .resolve
        case CURLE_INTERFACE_FAILED: .interface
        case CURLE_COULDNT_CONNECT: .connect
        // libcurl is given no other timeout.
        case CURLE_OPERATION_TIMEDOUT: .connectTimeout
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_USE_SSL_FAILED, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            .tls
        // Over HTTP/2, an end of the connection is CURLE_PARTIAL_FILE or CURLE_HTTP2 (GOAWAY),
        // whether or not the response had begun.
        case CURLE_PARTIAL_FILE where hasNoHead: .reset
        case CURLE_PARTIAL_FILE: .truncated
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM,
            CURLE_HTTP2:
            .reset
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP_RETURNED_ERROR,
            CURLE_CHUNK_FAILED:
            .protocolError
        case CURLE_BAD_CONTENT_ENCODING: .unsupportedEncoding
        // What libcurl's decoders report for bytes behind the end of the coded ones, such as a
        // second gzip member (RFC 1952 section 2.2); its own write errors have a `failure`.
        case CURLE_WRITE_ERROR
        where hopState.decodes && hopState.parser.fields.contains(.contentEncoding):
            .unsupportedEncoding
        // libcurl's error for a line of a head that exceeds its buffer's limit; a real lack of
        // memory ends the process.
        case CURLE_OUT_OF_MEMORY where isReadingFields:
            .headTooLarge(limit: client?.configuration.maxHeadBytes ?? 0)
        default: .other(code: Int32(bitPattern: code.rawValue))
        }
    }
}

extension TransferResult {
    /// Returns the same result with a failure's byte count set.
    func counting(_ bytes: Int64) -> TransferResult {
        guard case .failure(var error) = self else { return self }
        error.bytesReceived = bytes
        return .failure(error)
    }
}
