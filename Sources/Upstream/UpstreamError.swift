// Why a transfer failed, who caused it, and whether a retry may help.

/// The failure of one transfer.
package struct UpstreamError: Error, Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// The host's name has no address, or no name server answered.
        case resolve
        /// No address of the host accepted a connection.
        case connect
        /// No connection within `TransferTimeouts.connect`.
        case connectTimeout
        /// The TLS handshake failed or the certificate is not trusted.
        case tls
        /// No response within `TransferTimeouts.firstByte`.
        case firstByteTimeout
        /// No final response within `TransferTimeouts.head`, or after as many interim ones as are
        /// accepted; contains their number.
        case onlyInterim(count: Int)
        /// No byte of the body for `TransferTimeouts.stall`.
        case stalled
        /// The connection was broken.
        case reset
        /// The body ended before its announced end.
        case truncated
        /// The response is not well-formed HTTP.
        case protocolError
        case tooManyRedirects
        /// A redirect to something other than http or https.
        case forbiddenScheme
        /// The address policy rejected the peer; contains its address.
        case addressRefused(String)
        /// `OnlyOrigins` rejected the host of the requested URL, or of a redirect's.
        case originNotNamed(isRedirect: Bool)
        /// The proxy to the origin is unreachable, or refuses.
        case proxy
        /// The interface that connections to the origin must leave from cannot be used.
        case interface
        /// This machine has no descriptor, memory or thread left for a connection.
        case shortage
        /// The body exceeded the limit; contains it in bytes.
        case tooLarge(limit: Int64)
        /// The response's head or its trailers exceeded the limit; contains it in bytes.
        case headTooLarge(limit: Int)
        /// `Transfer.cancel` or the client's shutdown.
        case cancelled
        /// Preempted for playback.
        case preempted
        /// The waiting queue is full.
        case queueFull
        /// No slot became free within `UpstreamConfiguration.slotWait`.
        case slotTimeout
        /// A content coding that was not requested, or bytes that are not valid in it.
        case unsupportedEncoding
        /// Any other error; contains libcurl's code (libcurl-errors(3)).
        case other(code: Int32)
    }

    /// The party that has to act.
    package enum Fault: String, Sendable, Hashable {
        case origin, network, policy, caller, daemon
    }

    package var kind: Kind
    /// One sentence for the user.
    ///
    /// Contains at most the host: never a URL, a field or a body.
    package var message: String
    /// What the user can do about it; empty if there is no advice.
    package var advice = ""
    /// True if the same request may well succeed when repeated; says nothing about the method.
    package var isRetryable: Bool
    /// Body bytes delivered before the failure.
    package var bytesReceived: Int64 = 0
    /// The errno of a failed connection, or of a shortage; 0 if unknown.
    package var systemCode: CInt = 0
    /// True if a name server or a proxy did not answer in time: the next try would take as long, as
    /// after `connectTimeout`.
    package var isSilence = false

    /// Makes an error with the message of its kind.
    ///
    /// `detail` is appended to the message and must not contain secrets; a nil `isRetryable`
    /// selects the default of the kind.
    package init(
        _ kind: Kind, host: String, detail: String = "", isRetryable: Bool? = nil
    ) {
        self.kind = kind
        let text = kind.text(host: host)
        message = detail.isEmpty ? text : "\(text): \(detail)"
        self.isRetryable = isRetryable ?? kind.isUsuallyRetryable
        if case .addressRefused(let address) = kind {
            advice = AddressPolicy.advice(afterRefusing: address, of: host)
        }
    }

    package var fault: Fault { kind.fault }
}

extension UpstreamError: CustomStringConvertible {
    package var description: String { "\(kind.name): \(message)" }
}

extension UpstreamError.Kind {
    /// The name in logs and metrics.
    package var name: String {
        switch self {
        case .resolve: "resolve"
        case .connect: "connect"
        case .connectTimeout: "connect-timeout"
        case .tls: "tls"
        case .firstByteTimeout: "first-byte-timeout"
        case .onlyInterim: "only-interim"
        case .stalled: "stalled"
        case .reset: "reset"
        case .truncated: "truncated"
        case .protocolError: "protocol-error"
        case .tooManyRedirects: "too-many-redirects"
        case .forbiddenScheme: "forbidden-scheme"
        case .addressRefused: "address-refused"
        case .originNotNamed: "origin-not-named"
        case .proxy: "proxy"
        case .interface: "interface"
        case .shortage: "shortage"
        case .tooLarge: "too-large"
        case .headTooLarge: "head-too-large"
        case .cancelled: "cancelled"
        case .preempted: "preempted"
        case .queueFull: "queue-full"
        case .slotTimeout: "slot-timeout"
        case .unsupportedEncoding: "unsupported-encoding"
        case .other(let code): "curl-\(code)"
        }
    }

    /// The party that causes failures of this kind.
    package var fault: UpstreamError.Fault {
        switch self {
        case .tls, .firstByteTimeout, .onlyInterim, .stalled, .truncated, .protocolError,
            .tooManyRedirects, .unsupportedEncoding, .reset, .headTooLarge:
            .origin
        case .resolve, .connect, .connectTimeout, .proxy, .interface: .network
        case .forbiddenScheme, .addressRefused, .originNotNamed, .tooLarge: .policy
        case .cancelled: .caller
        case .preempted, .queueFull, .slotTimeout, .shortage, .other: .daemon
        }
    }

    var isUsuallyRetryable: Bool {
        switch self {
        case .resolve, .connect, .connectTimeout, .firstByteTimeout, .stalled, .reset, .truncated,
            .preempted, .queueFull, .proxy, .interface, .shortage:
            true
        case .tls, .onlyInterim, .protocolError, .tooManyRedirects, .forbiddenScheme,
            .addressRefused, .originNotNamed, .tooLarge, .headTooLarge, .cancelled, .slotTimeout,
            .unsupportedEncoding, .other:
            false
        }
    }

    func text(host: String) -> String {
        switch self {
        case .resolve: "the name \(host) could not be resolved"
        case .connect: "no connection to \(host)"
        case .connectTimeout: "\(host) did not accept a connection in time"
        case .tls: "no trusted TLS connection to \(host)"
        case .firstByteTimeout: "\(host) did not answer in time"
        case .onlyInterim(let count):
            "\(host) sent interim responses (\(count)) and no final one"
        case .stalled: "\(host) stopped sending"
        case .reset: "\(host) broke the connection"
        case .truncated: "\(host) ended the body early"
        case .protocolError: "\(host) sent something that is not HTTP"
        case .tooManyRedirects: "\(host) redirects without end"
        case .forbiddenScheme: "\(host) redirects to a scheme other than http and https"
        case .addressRefused(let name) where name == host && !AddressPolicy.isAddress(host):
            "the host \(host) is private, which the address policy does not allow"
        case .interface: "the way out to \(host) (--origin-interface) cannot be used"
        case .proxy: "the proxy for \(host) (--origin-proxy) cannot be used"
        case .addressRefused(let address):
            "the address \(address) of \(host) is not allowed by the address policy"
        case .originNotNamed(let isRedirect):
            (isRedirect ? "a redirect leads to \(host)" : "the host is \(host)")
                + ", which is not named with --only-origin"
        case .shortage: "this machine could open no connection to \(host)"
        case .tooLarge(let limit):
            "\(host) exceeded the limit of \(limit) bytes for a body of this kind"
        case .headTooLarge(let limit):
            "\(host) exceeded the limit of \(limit) bytes for the head and trailers of a response"
        case .cancelled: "the transfer was cancelled"
        case .preempted: "the slot was taken back for playback"
        case .queueFull: "too many transfers are waiting"
        case .slotTimeout: "no slot came free for a transfer from \(host)"
        case .unsupportedEncoding: "\(host) sent a coding that cannot be undone"
        case .other: "the transfer from \(host) failed"
        }
    }
}
