import CCurl
import COpenSSL
import HTTP
import URISyntax

/// Failures of the route to an origin: its proxy, and the trust in its certificate.
extension Transfer {
    /// True if the head is not the origin's: an HTTP proxy requests credentials.
    var isAnswerOfProxy: Bool {
        origin.scheme == .http && hopState.parser.status.rawValue == 407
            && route.proxy?.kind.isHTTP == true
    }

    /// Returns the failure for the proxy's own response to a request.
    func proxyRefusal(status: Int) -> UpstreamError {
        switch status {
        case 407:
            let hasCredentials = route.proxy?.hasCredentials == true
            return proxyFailure(
                hasCredentials
                    ? "it does not accept the user and password"
                    : "it asks for a user and password",
                isRetryable: false)
        case 500...599:
            // The proxy cannot reach the origin, like a failed connection of the daemon itself.
            return UpstreamError(
                .connect, host: host, detail: "the proxy (--origin-proxy) answered \(status)")
        default:
            return proxyFailure("it answered \(status)", isRetryable: false)
        }
    }

    /// Returns the failure for a libcurl error that the proxy caused; otherwise nil.
    func proxyFailure(for code: CURLcode) -> UpstreamError? {
        guard route.proxy != nil, let easy else { return nil }
        switch code {
        case CURLE_COULDNT_RESOLVE_PROXY:
            return proxyFailure("its name could not be resolved")
        // All connections are made to the proxy only.
        case CURLE_COULDNT_CONNECT:
            return proxyFailure("it does not accept connections")
        case CURLE_PROXY:
            return socksFailure(easy.long(CURLINFO_PROXY_ERROR))
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
            let status = easy.long(CURLINFO_HTTP_CONNECTCODE)
            return status >= 300 ? proxyRefusal(status: status) : nil
        case CURLE_PEER_FAILED_VERIFICATION where easy.long(CURLINFO_PROXY_SSL_VERIFYRESULT) != 0:
            return proxyFailure(
                "its certificate is not trusted; name its authority with --ca-file",
                isRetryable: false)
        default:
            return nil
        }
    }

    private func socksFailure(_ reason: Int) -> UpstreamError {
        let reason = CURLproxycode(rawValue: UInt32(truncatingIfNeeded: reason))
        switch reason {
        case CURLPX_REPLY_CONNECTION_REFUSED, CURLPX_REPLY_HOST_UNREACHABLE,
            CURLPX_REPLY_NETWORK_UNREACHABLE, CURLPX_REPLY_TTL_EXPIRED,
            CURLPX_REPLY_GENERAL_SERVER_FAILURE:
            return UpstreamError(
                .connect, host: host, detail: "the proxy (--origin-proxy) cannot reach it")
        case CURLPX_RESOLVE_HOST:
            return UpstreamError(.resolve, host: host)
        case CURLPX_NO_AUTH, CURLPX_USER_REJECTED:
            return proxyRefusal(status: 407)
        case CURLPX_REPLY_NOT_ALLOWED:
            return proxyFailure("its rules do not allow this host", isRetryable: false)
        default:
            return proxyFailure("it does not speak SOCKS 5 as expected")
        }
    }

    /// True if an HTTP proxy has connected the daemon to the origin (RFC 9110 section 9.3.6).
    var hasTunnel: Bool {
        guard let status = easy?.long(CURLINFO_HTTP_CONNECTCODE) else { return false }
        return (200..<300).contains(status)
    }

    /// Returns the failure for a proxy through which there was no connection in time.
    func silenceOfProxy(isLookedUp: Bool, isConnected: Bool) -> UpstreamError {
        let detail =
            switch (isLookedUp, isConnected) {
            case (false, _): "its name could not be resolved in time"
            case (true, false): "it did not accept a connection in time"
            case (true, true): "it made no connection to the origin in time"
            }
        var error = proxyFailure(detail)
        // A proxy is silent, too, while it waits for an origin that does not accept its connection.
        if isConnected { error.advice = "check that the proxy answers, and reaches the origin" }
        error.isSilence = true
        return error
    }

    private func proxyFailure(_ detail: String, isRetryable: Bool = true) -> UpstreamError {
        UpstreamError(.proxy, host: host, detail: detail, isRetryable: isRetryable)
    }

    /// True if the origin demands a client certificate, or rejects the one that it was sent.
    ///
    /// In TLS 1.3 the alert arrives after the handshake (RFC 8446 section 4.4.2.4), and libcurl
    /// reports a connection that broke; only its message tells.
    var isCertificateRefused: Bool {
        // An alert of a proxy with TLS has the same words.
        guard hasNoHead, origin.scheme == .https, route.proxy?.kind != .https,
            let said = easy?.failureText, said.contains(" alert ")
        else { return false }
        return ["certificate", "unknown ca", "access denied"].contains { said.contains($0) }
    }

    /// Returns the failure of TLS, with advice.
    func tlsFailure(for code: CURLcode) -> UpstreamError {
        let said = easy?.failureText ?? ""
        // A broken handshake may succeed next time; an untrusted certificate will not.
        var error = UpstreamError(
            .tls, host: host, detail: said,
            isRetryable: code == CURLE_SSL_CONNECT_ERROR && !isCertificateRefused)
        let trust = route.caFile == nil ? "name its certificate or its authority with" : "correct"
        let option = "--origin-ca \(origin.host)=FILE"
        switch code {
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            error.message =
                "no trusted TLS connection to \(host): its public key is none of those that --origin-pin names"
            error.advice =
                "if the origin has a new key that you trust, change --origin-pin \(origin.host)=PINS"
        case CURLE_SSL_CACERT_BADFILE:
            error.advice = "the file of certificates to trust (\(trustOption)) cannot be read"
        case CURLE_SSL_CERTPROBLEM:
            error.advice = "check the files of --origin-cert \(origin.host)=CERT,KEY"
        case CURLE_PEER_FAILED_VERIFICATION:
            switch CInt(truncatingIfNeeded: easy?.long(CURLINFO_SSL_VERIFYRESULT) ?? 0) {
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
                X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
                X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
                error.advice = "if you trust this origin, \(trust) \(option)"
            case X509_V_ERR_CERT_HAS_EXPIRED:
                error.advice = "its operator has to renew the certificate"
            case X509_V_ERR_CERT_NOT_YET_VALID:
                error.advice = "check the clock of this machine"
            // libcurl checks the name itself and exposes no result of that.
            case X509_V_OK, X509_V_ERR_UNSPECIFIED, X509_V_ERR_HOSTNAME_MISMATCH:
                error.advice =
                    "its certificate is for another name; ask for the origin by that name"
            default:
                error.advice = "the origin's operator has to mend its certificate"
            }
        case _ where isCertificateRefused:
            let option = "--origin-cert \(origin.host)=CERT,KEY"
            error.advice =
                route.certificate == nil
                ? "it wants a certificate of its clients: name one with \(option)"
                : "it does not accept the certificate of \(option)"
        default:
            break
        }
        return error
    }

    private var trustOption: String { route.caFile == nil ? "--ca-file" : "--origin-ca" }
}
