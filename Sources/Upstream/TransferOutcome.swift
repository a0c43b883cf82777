import CCurl
import HTTP
import Posix
import URISyntax

/// What libcurl knows about a hop, in our terms: head, timings, failure.
extension Transfer {
    /// The redirect that the head which just came asks for.
    func redirect(to url: AbsoluteURL) -> Redirect {
        let from = hop.url.withoutUserinfo
        return Redirect(
            status: parser.status, from: from, to: url,
            setCookies: setCookies.suffix(parser.fields.count(of: .setCookie)),
            isCrossOrigin: hop.url.origin != url.origin)
    }

    /// The head that just came, as it is told to the delegate.
    func head() -> TransferHead {
        var fields = parser.fields
        var coding: String?
        if decodes, let found = fields.combined(.contentEncoding),
            found.lowercased() != "identity", !parser.status.neverHasContent, hop.method != .head
        {
            coding = found
            fields.remove(.contentEncoding)
            fields.remove(.contentLength)
        }
        return TransferHead(
            status: parser.status, version: parser.version, fields: fields,
            decodedCoding: coding, finalURL: hop.url.withoutUserinfo, remoteAddress: times.address,
            setCookies: setCookies, redirects: hop.redirects, provesItsEnd: provesItsEnd())
    }

    /// RFC 9112 section 6.3.
    private func provesItsEnd() -> Bool {
        parser.version.major >= 2 || parser.status.neverHasContent || hop.method == .head
            || parser.fields.contains(.contentLength) || parser.isChunked
    }

    /// Whether the body is in a transfer coding that would have to be undone and is not: one of the
    /// registered ones (RFC 9112 section 7), which nobody asked for.
    ///
    /// Other names mean nothing: the body is what comes until the connection ends (section 6.3).
    var hasUnreadableCoding: Bool {
        request.isTransparent && parser.version.major < 2
            && parser.fields.listMembers(.transferEncoding).contains { coding in
                let name = ASCII.lowercased(coding.prefix { $0 != ";" && $0 != " " })
                return ["gzip", "x-gzip", "deflate", "compress", "x-compress"].contains(name)
            }
    }

    /// Whether the end of the connection is the end of the body, and nothing else tells it.
    var endsWithConnection: Bool { !provesItsEnd() }

    func peer() -> SocketAddress? {
        guard let easy, let host = easy.string(CURLINFO_PRIMARY_IP) else { return nil }
        return SocketAddress(
            host: host, port: UInt16(truncatingIfNeeded: easy.long(CURLINFO_PRIMARY_PORT)))
    }

    func timings(at now: Monotonic) -> TransferTimings {
        var timings = TransferTimings()
        timings.hop = times
        timings.total = now - grantedAt
        timings.bytes = bytesReceived
        guard let easy else { return timings }
        let firstByte = easy.microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        timings.firstByte = Interval(nanoseconds: firstByte * 1000)
        return timings
    }

    /// The failure that a code stands for (libcurl-errors(3)).
    func error(for code: CURLcode) -> UpstreamError {
        if let refusedAddress, code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK {
            return UpstreamError(.addressRefused(refusedAddress), host: host)
        }
        if let failure = proxyFailure(for: code) { return failure }
        let kind = kind(of: code)
        switch kind {
        case .headTooLarge:
            // A line that we never saw, since libcurl gives up before its end.
            return UpstreamError(kind, host: host, detail: "libcurl takes no line of 100 kB")
        case .resolve:
            return lookupFailure()
        case .tls:
            // What OpenSSL says is what the operator needs; it names certificates, not secrets.
            return tlsFailure(for: code)
        case .other:
            return UpstreamError(
                kind, host: host, detail: String(cString: curl_easy_strerror(code)))
        default:
            var error = UpstreamError(kind, host: host)
            error.systemCode = CInt(truncatingIfNeeded: easy?.long(CURLINFO_OS_ERRNO) ?? 0)
            return error
        }
    }

    /// Whether a head is expected, or trailers are: libcurl may still be at a line of either.
    private var isReadingFields: Bool {
        if case .head = phase { return true }
        return parser.isChunked
    }

    private func kind(of code: CURLcode) -> UpstreamError.Kind {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: .resolve
        case CURLE_INTERFACE_FAILED: .interface
        case CURLE_COULDNT_CONNECT: .connect
        // No other time limit is given to libcurl.
        case CURLE_OPERATION_TIMEDOUT: .connectTimeout
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_USE_SSL_FAILED, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            .tls
        case CURLE_PARTIAL_FILE: .truncated
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM: .reset
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2,
            CURLE_HTTP_RETURNED_ERROR, CURLE_CHUNK_FAILED:
            .protocolError
        case CURLE_BAD_CONTENT_ENCODING: .unsupportedEncoding
        case CURLE_FILESIZE_EXCEEDED: .tooLarge
        // libcurl's answer to a line of a head that is longer than its buffer may grow; to lack
        // memory in earnest ends the process.
        case CURLE_OUT_OF_MEMORY where isReadingFields:
            .headTooLarge(limit: client?.configuration.maxHeadBytes ?? 0)
        default: .other(code: Int32(bitPattern: code.rawValue))
        }
    }
}

extension TransferResult {
    /// The same result with a failure's bytes filled in.
    func counting(_ bytes: Int64) -> TransferResult {
        guard case .failure(var error) = self else { return self }
        error.bytesReceived = bytes
        return .failure(error)
    }
}
