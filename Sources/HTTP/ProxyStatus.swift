/// An error between a proxy and the next hop: the value of `Proxy-Status` (RFC 9209).
package struct ProxyStatus: Sendable, Hashable {
    /// The registered error types that occur at this gateway (RFC 9209 section 2.3).
    package enum ErrorType: String, Sendable, Hashable, CaseIterable {
        case dnsError = "dns_error"
        case destinationUnavailable = "destination_unavailable"
        case destinationIPProhibited = "destination_ip_prohibited"
        case destinationIPUnroutable = "destination_ip_unroutable"
        case connectionRefused = "connection_refused"
        case connectionTerminated = "connection_terminated"
        case connectionTimeout = "connection_timeout"
        case connectionReadTimeout = "connection_read_timeout"
        case connectionLimitReached = "connection_limit_reached"
        case tlsProtocolError = "tls_protocol_error"
        case tlsCertificateError = "tls_certificate_error"
        case httpResponseIncomplete = "http_response_incomplete"
        case httpResponseHeaderSectionSize = "http_response_header_section_size"
        case httpResponseTrailerSectionSize = "http_response_trailer_section_size"
        case httpResponseBodySize = "http_response_body_size"
        case httpResponseContentCoding = "http_response_content_coding"
        case httpResponseTimeout = "http_response_timeout"
        case httpRequestDenied = "http_request_denied"
        case httpProtocolError = "http_protocol_error"
        case proxyInternalError = "proxy_internal_error"
        case proxyLoopDetected = "proxy_loop_detected"
    }

    /// The name of the proxy, written first.
    package var proxy: String
    package var error: ErrorType?
    /// The status of the next hop's response.
    package var receivedStatus: HTTPStatus?

    package init(proxy: String, error: ErrorType? = nil, receivedStatus: HTTPStatus? = nil) {
        self.proxy = proxy
        self.error = error
        self.receivedStatus = receivedStatus
    }

    /// The value as a list member of a structured field (RFC 8941).
    package var serialised: String {
        var value = proxy
        if let error { value += "; error=\(error.rawValue)" }
        if let receivedStatus { value += "; received-status=\(receivedStatus.rawValue)" }
        return value
    }

    /// Appends this proxy's member after those of the proxies nearer to the origin.
    package func append(to fields: inout Fields) {
        fields.append("Proxy-Status", serialised)
    }
}
