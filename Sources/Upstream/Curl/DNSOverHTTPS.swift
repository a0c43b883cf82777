import CCurl
import Glibc
import Posix

// Name lookups over HTTPS (RFC 8484). libcurl reports every failed lookup with the same code; only
// its verbose messages tell what failed.

/// The cause of a failed lookup over HTTPS, from libcurl's messages.
enum LookupFault: Sendable, Hashable {
    /// The server was unreachable, or its response was invalid; contains the reason.
    case server(String)
    /// The server gave no address: there is none, or it failed to find one (SERVFAIL), of which
    /// libcurl's messages do not say which.
    case noAddress

    /// Parses a verbose message; nil for unrelated ones.
    init?(message: String) {
        let request = "DoH request "
        if message.hasPrefix(request) {
            self = .server(String(message.dropFirst(request.count)))
            return
        }
        let result = "DoH: "
        guard message.hasPrefix(result), let end = message.firstRange(of: " type ") else {
            return nil
        }
        switch message[..<end.lowerBound].dropFirst(result.count) {
        case "Bad RCODE", "No content": self = .noAddress
        case let reason: self = .server("its answer is no DNS message (\(reason))")
        }
    }
}

extension Transfer {
    /// Keeps the first message about the server; it is the cause of the others.
    func take(lookupMessage message: String) {
        guard let fault = LookupFault(message: message) else { return }
        if case .server = hopState.lookupFault { return }
        hopState.lookupFault = fault
    }

    /// Returns the failure of a lookup.
    ///
    /// - Parameter isLate: true if it took longer than a connection may.
    /// - Returns: an error that says what failed.
    func lookupFailure(isLate: Bool = false) -> UpstreamError {
        guard client?.configuration.dohURL != nil else {
            let detail = isLate ? "no name server answered in time" : ""
            var error = UpstreamError(.resolve, host: host, detail: detail)
            error.isSilence = isLate
            return error
        }
        let reason: String
        switch hopState.lookupFault {
        case .server(let text)?: reason = text
        case _ where isLate: reason = Self.timeoutText
        case .noAddress?, nil:
            return UpstreamError(
                .resolve, host: host, detail: "the DNS server of --doh-url gave no address for it")
        }
        var error = UpstreamError(
            .resolve, host: host,
            detail: "the DNS server of --doh-url failed, not the origin: \(reason)")
        error.advice = "check that --doh-url is right and its server can be reached"
        // libcurl ends its request to the server at about the time when it gives up the connection.
        error.isSilence = isLate || reason == Self.timeoutText
        return error
    }

    /// libcurl's text for a server that did not answer in time.
    private static var timeoutText: String {
        String(cString: curl_easy_strerror(CURLE_OPERATION_TIMEDOUT))
    }
}

extension CurlEasy {
    /// The file that receives libcurl's messages about its own requests to the server.
    private nonisolated(unsafe) static let nowhere = fopen("/dev/null", "we")

    /// Makes libcurl look names up at a DNS server over HTTPS.
    func lookUp(overHTTPS url: String) {
        guard let nowhere = Self.nowhere else { return }
        set(CURLOPT_DOH_URL, url)
        set(CURLOPT_STDERR, pointer: UnsafeMutableRawPointer(nowhere))
    }

    /// Receives libcurl's messages about the lookup, until the connection is established.
    func listenToLookup(of transfer: Transfer) {
        sluice_curl_set_debug(handle, verboseMessage, Unmanaged.passUnretained(transfer).toOpaque())
        set(CURLOPT_VERBOSE, flag: true)
    }

    func stopListening() { set(CURLOPT_VERBOSE, flag: false) }
}

/// CURLOPT_DEBUGFUNCTION.
private func verboseMessage(
    _ easy: UnsafeMutableRawPointer?, _ kind: curl_infotype, _ text: UnsafeMutablePointer<CChar>?,
    _ count: Int, _ context: UnsafeMutableRawPointer?
) -> CInt {
    guard kind == CURLINFO_TEXT, let text, let context, count >= 4, count < 512,
        memcmp(text, "DoH", 3) == 0
    else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: text, count: count)
    let message = String(decoding: bytes, as: UTF8.self)
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    transfer.take(lookupMessage: String(message.prefix { $0 != "\n" }))
    return 0
}
