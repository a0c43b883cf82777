// The failure of a request: who caused it, what went wrong and what to do.
package import CachePolicy
import Glibc
package import HTTP
package import URISyntax
package import Upstream

/// A failure with everything needed for the error response.
///
/// Texts contain no secrets: URLs in them are redacted.
package struct ProxyFailure: Error, Sendable, Equatable {
    /// The party that has to act.
    package enum Fault: String, Sendable, CaseIterable {
        case client
        case origin
        case us = "daemon"
    }

    package let fault: Fault
    /// The status of the response.
    package let status: HTTPStatus
    /// One sentence for the user.
    package let message: String
    /// The status that the origin responded with, if it did.
    package let originStatus: HTTPStatus?
    /// True if the origin was unreachable or did not work, so that a stale response may be served.
    package let allowsStale: Bool
    /// The length of the representation, for a 416.
    package let total: Int64?
    /// The origin's Retry-After in seconds, if it sent one.
    package var retryAfter: Int64?
    /// The origin's WWW-Authenticate, of a 401.
    package var challenge: String?
    /// True if no request was sent to the origin.
    package var isUnasked = false
    /// Why a request is refused by a rule, as a detail of Cache-Status (RFC 9211 section 2.8); nil
    /// for all other failures.
    package var lookupDetail: String?
    /// The URL that the origin refused; nil for other failures.
    ///
    /// Requests that share a flight get the failure too, although their URLs may differ.
    package var refusedURL: AbsoluteURL?
    /// The origin that a redirect led to, and that may have caused the failure; nil if there was
    /// no redirect.
    package var redirectedOrigin: Origin?
    /// Why the request was forwarded, if something was stored (RFC 9211 section 2.2).
    package var forwardReason: CacheStatus.ForwardReason?
    /// True if no web page may read the response, not even its status.
    package var isHiddenFromPages = false
    /// True if nothing proves that a part of a resource belongs to the stored bytes; a request from
    /// the first byte on would succeed.
    package var isUnproven = false
    /// True if what was fetched is not in the store any more: evicted, purged, or replaced by
    /// another fetch.
    package var isLost = false
    /// True if the origin forbids storing the response, as with `Cache-Control: no-store`, which
    /// was wanted only for the store.
    package var forbidsStoring = false
    /// True if the origin sent an HTML page in place of a playlist or media, as captive portals do.
    package var isPage = false
    /// True if a text could not be read that another session may be able to read.
    package var dependsOnReader = false
    /// True if an earlier lookup of the host's name failed, which is why no request was sent.
    package var tellsOfName = false
    /// The error on the way to the origin, in the terms of RFC 9209.
    package var proxyError: ProxyStatus.ErrorType?

    package init(
        _ fault: Fault, _ status: HTTPStatus, _ message: String, originStatus: HTTPStatus? = nil,
        allowsStale: Bool = false, total: Int64? = nil
    ) {
        self.fault = fault
        self.status = status
        self.message = message
        self.originStatus = originStatus
        self.allowsStale = allowsStale
        self.total = total
    }

    /// The response cannot be stored: the disk is full, the budget is too small, or everything is
    /// pinned.
    package static let noRoom = ProxyFailure(
        .us, .insufficientStorage,
        "the cache or its disk has no room; free some with `sluice purge`, or raise --cache-size")

    /// What was being fetched ahead of players was purged, or replaced by another fetch, meanwhile.
    package static func removed(_ subject: String) -> ProxyFailure {
        var failure = ProxyFailure(
            .us, .serviceUnavailable,
            "\(subject) was purged or replaced while it was fetched; it is fetched again if it is "
                + "still wanted")
        failure.isLost = true
        return failure
    }

    /// A part cannot be stored now: another request is receiving the body that it may belong to.
    package static func partBeside(_ subject: String) -> ProxyFailure {
        ProxyFailure(
            .us, .serviceUnavailable,
            "\(subject): another request is receiving the body that this part may belong to, and "
                + "without a validator of the origin it cannot be added to it; it is fetched later")
    }

    /// The response to an ahead fetch may not be stored, for another reason than lack of room or
    /// proof.
    package static func notKept(
        _ subject: String, _ reason: Storability.NoStoreReason
    ) -> ProxyFailure {
        var failure = ProxyFailure(
            .origin, .badGateway, "\(subject) may not be kept: \(reason.rawValue)")
        failure.forbidsStoring = reason.isOfOneClient
        return failure
    }

    /// A page of another site may not have what a private host serves.
    package static let hiddenFromPages = hidden(
        "pages of other sites may not reach what --allow-private, --allow-host or --origin-cert "
            + "opens")

    /// A page of another site may not have what user information or header fields of a mount open.
    package static let hiddenMount = hidden(
        "pages of other sites may not use a mount with user information or header fields of its own"
    )

    /// A page of another site may change nothing through a mount.
    package static let changeByPage = hidden(
        "pages of other sites may send a mount no request that changes something")

    /// The response to a page of another site for an unknown name and for a private address alike,
    /// so that no page can look up names with the resolver of this machine.
    ///
    /// A page can read it, and its status is that of an origin that cannot be reached: players in
    /// pages repeat such a request, and an outage of the resolver passes.
    private static let noPublicAddress = ProxyFailure(
        .origin, .badGateway,
        "the host of this URL has no address that pages of other sites may reach; check the name, "
            + "or allow this page with --cors-origin")

    /// The failure that a page of another site gets in place of this one, which tells what a name
    /// means to the resolver of this machine; nil for all others.
    package var toldToForeignPage: ProxyFailure? {
        switch proxyError {
        case .dnsError?, .destinationIPProhibited?: .noPublicAddress
        default: tellsOfName ? .noPublicAddress : nil
        }
    }

    private static func hidden(_ reason: String) -> ProxyFailure {
        var failure = ProxyFailure(
            .client, .forbidden, reason + "; allow this one with --cors-origin")
        failure.isHiddenFromPages = true
        return failure
    }

    /// True if the same request may succeed later by itself.
    ///
    /// A 200 with unusable content may be permanent.
    package var mayPass: Bool { allowsStale && originStatus != .ok }

    /// True if the same request may succeed later without any intervention: the origin's failure
    /// may pass, or the daemon lacks room for now.
    package var isWorthRetrying: Bool {
        fault == .us ? status != .internalServerError : mayPass
    }

    /// Seconds after which a slot, or a descriptor, may be free: a segment or two.
    private static let slotPause: Int64 = 5

    /// The body of the response: one line.
    package var text: String { "\(fault.rawValue) error: \(message)\n" }

    /// Makes the failure of a transfer.
    package init(_ error: UpstreamError, subject: String) {
        let advice = error.advice.isEmpty ? "" : "; \(error.advice)"
        let message = "\(subject): \(error.message)\(advice)"
        switch error.kind {
        case .addressRefused:
            self.init(.client, .forbidden, message)
        case .originNotNamed(let isRedirect):
            self.init(.client, .forbidden, message)
            isUnasked = !isRedirect
            lookupDetail = "only-origin"
        case .forbiddenScheme:
            self.init(.origin, .badGateway, message)
        case .queueFull:
            self.init(.us, .serviceUnavailable, message, allowsStale: true)
            isUnasked = true
        case .slotTimeout, .shortage:
            self.init(.us, .serviceUnavailable, message, allowsStale: true)
            isUnasked = true
            retryAfter = Self.slotPause
        case .proxy, .interface:
            self.init(.us, .badGateway, message, allowsStale: true)
        default:
            self.init(.origin, error.gatewayStatus, message, allowsStale: true)
        }
        proxyError = error.proxyError
    }

    /// The `Proxy-Status` of the response; nil if nothing failed upstream.
    package var proxyStatus: ProxyStatus? {
        let error = status == .loopDetected ? .proxyLoopDetected : proxyError
        guard error != nil || (fault == .origin && originStatus != nil) else { return nil }
        return ProxyStatus(proxy: "sluice", error: error, receivedStatus: originStatus)
    }

    /// Makes the failure for an origin's response that is neither content nor a redirect.
    package init(originStatus status: HTTPStatus, subject: String) {
        // A success without the content, or an unrequested 206 or 304, is as useless as a 500: with
        // such a status a player would take the text of the failure for content. A 204 has none.
        let isUseless =
            (200..<300).contains(status.rawValue) && status != .noContent
            || status == .notModified
        let isServerError = status.rawValue >= 500 || isUseless
        self.init(
            .origin, isServerError ? .badGateway : status,
            "\(subject): the origin answered \(status.rawValue) \(status.reasonPhrase)",
            originStatus: status, allowsStale: isServerError || status.rawValue == 429)
    }
}

extension ProxyFailure: CustomStringConvertible {
    /// The message, as logs show it.
    package var description: String { message }
}

extension UpstreamError {
    /// The status of a response in the place of what an origin did not send: 504 if it let time run
    /// out, otherwise 502.
    package var gatewayStatus: HTTPStatus {
        switch kind {
        case .connectTimeout, .firstByteTimeout, .stalled: .gatewayTimeout
        default: .badGateway
        }
    }

    /// The registered name of this failure (RFC 9209 section 2.3).
    package var proxyError: ProxyStatus.ErrorType {
        switch kind {
        case .resolve: .dnsError
        case .connect: connectError
        case .proxy, .interface: .destinationUnavailable
        case .connectTimeout: .connectionTimeout
        // A broken handshake may succeed next time; an untrusted certificate will not.
        case .tls: isRetryable ? .tlsProtocolError : .tlsCertificateError
        case .firstByteTimeout: .httpResponseTimeout
        case .stalled: .connectionReadTimeout
        case .reset: .connectionTerminated
        case .truncated, .onlyInterim: .httpResponseIncomplete
        case .protocolError, .tooManyRedirects, .forbiddenScheme: .httpProtocolError
        case .addressRefused: .destinationIPProhibited
        case .originNotNamed: .httpRequestDenied
        case .tooLarge: .httpResponseBodySize
        case .headTooLarge:
            bytesReceived > 0 ? .httpResponseTrailerSectionSize : .httpResponseHeaderSectionSize
        case .queueFull, .slotTimeout: .connectionLimitReached
        case .unsupportedEncoding: .httpResponseContentCoding
        case .cancelled, .preempted, .shortage, .other: .proxyInternalError
        }
    }

    private var connectError: ProxyStatus.ErrorType {
        switch systemCode {
        case EHOSTUNREACH, ENETUNREACH: .destinationIPUnroutable
        case ECONNREFUSED, 0: .connectionRefused
        default: .destinationUnavailable
        }
    }
}

extension ProxyFailure {
    /// The table of short names cannot be read: a name that is not found may be known.
    package static let unreadableIndex = soonPast(
        "the index of the cache, which has the URL of this short link, cannot be read; ask "
            + "again in a moment or reload the playlist, and check the disk if neither helps")

    /// The saved window of an ended recording, which tells what its names mean, cannot be read.
    package static let windowUnread = soonPast(
        "the saved window of the recording, which tells its segments apart, cannot be read; "
            + "ask again in a moment, and see the daemon's log if that does not help")

    /// Too many long texts are waiting for a text thread.
    package static let textsWait = soonPast(
        "too many long playlists are being prepared; ask again in a moment")

    private static func soonPast(_ message: String) -> ProxyFailure {
        var failure = ProxyFailure(.us, .serviceUnavailable, message)
        failure.retryAfter = 1
        return failure
    }

    /// True if a repeated request would fail in the same way.
    package var isForGood: Bool {
        if fault == .client { return true }
        guard let originStatus else { return false }
        return (400..<500).contains(originStatus.rawValue)
            && originStatus.rawValue != 408 && originStatus.rawValue != 429
    }

    /// True if the origin refused a request that it may grant later: with a new token, or with
    /// another name of the resource in a renewed playlist.
    package var isOfToken: Bool {
        fault == .origin && originStatus.map { [401, 403, 410].contains($0.rawValue) } ?? false
    }

    /// True if the origin responded 200 with content that cannot be used.
    package var isOfContent: Bool { fault == .origin && originStatus == .ok }
}
