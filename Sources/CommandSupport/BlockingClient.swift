import CCurl
import Posix

/// The blocking HTTP client of the commands, on libcurl; keeps its connection between requests.
///
/// For one thread at a time. Proxies in the environment are ignored: commands contact the daemon,
/// an origin that the user named, or the sample CDN.
package final class BlockingClient {
    /// Sets the way to a URL's origin on libcurl's handle, and returns what must outlive the transfer.
    package typealias Way = (_ handle: UnsafeMutableRawPointer, _ url: String) -> AnyObject?

    /// One request with its timeouts.
    package struct Request {
        package var url: String
        package var method: String
        /// Header lines.
        package var fields: [String] = []
        package var content: [UInt8]?
        /// The first and the last requested byte.
        package var range: ClosedRange<Int64>?
        /// User and password in libcurl's form.
        package var credentials: String?
        package var userAgent: String?
        /// A PEM file of authorities that are trusted besides the system's folder of them.
        package var authority: String?
        /// Whether up to ten redirects are followed.
        package var followsRedirects = false
        /// Whether the fields of the answer are kept.
        package var keepsFields = false
        /// Whether content codings are asked for and undone.
        package var decodesContent = false
        /// True if a status of 400 or more is a failure, without delivering its body.
        package var failsOnErrorStatus = false
        /// The way to the origin, asked for at each redirect too; nil for the direct way.
        package var way: Way?
        /// The timeout for connecting, in seconds.
        package var connectSeconds = 5
        /// The timeout for the whole request, in milliseconds; nil for no limit.
        package var milliseconds: Int?
        /// The timeout without a received byte, in seconds; nil for no limit.
        package var stallSeconds: Int?

        package init(_ method: String = "GET", _ url: String) {
            self.method = method
            self.url = url
        }
    }

    /// The response without its body.
    package struct Answer {
        package let status: Int
        /// The URL after redirects; nil if libcurl does not report it.
        package let url: String?
        /// The fields of the last head in the order in which they came; empty unless the request keeps them.
        package var fields: [(name: String, value: String)] = []
        /// When the last request of it had got how far.
        package var phases = Phases()
    }

    /// Microseconds from the start of a request to the end of each phase.
    package struct Phases {
        package var name: Int64 = 0
        package var connect: Int64 = 0
        /// 0 without TLS.
        package var secure: Int64 = 0
        package var firstByte: Int64 = 0
    }

    /// Why there is no complete response.
    package struct Failure: Error {
        package enum Kind {
            /// Nothing listens at the address.
            case refused
            /// The timeout expired after a connection was made.
            case unanswered
            /// The timeout expired before a connection was made.
            case unconnected
            /// The receiver rejected more bytes.
            case stopped
            /// The server's certificate leads to no authority that is trusted, or is another name's.
            case untrusted
            /// The file of the authority that is to be trusted cannot be used.
            case noAuthority
            case other
        }

        package let kind: Kind
        /// libcurl's message.
        package let reason: String
        /// What was answered until the receiver took no more; nil for other failures.
        package var answer: Answer?

        package init(kind: Kind, reason: String) {
            self.kind = kind
            self.reason = reason
        }
    }

    /// Takes the lines of heads; those of a redirect, or of a 1xx, make room for the next.
    private final class HeadReceiver {
        /// More are ignored, as is what stands in longer lines.
        private static let mostFields = 200
        private static let longestLine = 8 << 10

        private(set) var fields: [(name: String, value: String)] = []

        var namesLocation: Bool { fields.contains { $0.name.lowercased() == "location" } }

        func take(_ line: UnsafeRawBufferPointer) {
            let text = String(decoding: line.prefix(Self.longestLine), as: UTF8.self)
            if text.hasPrefix("HTTP/") { return fields = [] }
            guard let colon = text.firstIndex(of: ":"), fields.count < Self.mostFields else {
                return
            }
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            let end = value.lastIndex { !$0.isWhitespace }.map { value.index(after: $0) }
            fields.append(
                (String(text[..<colon]), String(value[..<(end ?? value.startIndex)])))
        }
    }

    /// Receives pieces of a body; returning false ends the transfer.
    private final class Receiver {
        let take: (UnsafeRawBufferPointer) -> Bool
        init(_ take: @escaping (UnsafeRawBufferPointer) -> Bool) { self.take = take }
    }

    private let easy: UnsafeMutableRawPointer?

    package init() { easy = curl_easy_init() }

    deinit { if let easy { curl_easy_cleanup(easy) } }

    /// Sends one request; blocks until the body is complete, refused or failed.
    ///
    /// - Parameters:
    ///   - request: what to send.
    ///   - take: called with each piece of the body; returning false ends the transfer.
    /// - Returns: the response without its body.
    /// - Throws: if there is no complete response.
    package func perform(
        _ request: Request, take: @escaping (UnsafeRawBufferPointer) -> Bool
    ) throws(Failure) -> Answer {
        guard request.followsRedirects, request.way != nil else {
            return try send(request, take: take)
        }
        // libcurl would follow with the way of the first origin.
        let deadline = request.milliseconds.map { Monotonic.now() + .milliseconds(Int64($0)) }
        var hop = request
        for _ in 0...Self.mostRedirects {
            let answer = try send(hop, take: take)
            guard let next = redirectTarget else { return answer }
            if Self.origin(next) != Self.origin(hop.url) {
                hop.credentials = nil
                hop.fields.removeAll { line in
                    Self.ownersFields.contains { line.lowercased().hasPrefix($0) }
                }
            }
            hop.url = next
            if let deadline {
                hop.milliseconds = max(1, Int((deadline - .now()).inMilliseconds))
            }
        }
        throw Failure(kind: .other, reason: "over \(Self.mostRedirects) redirects")
    }

    private static let mostRedirects = 10

    /// What another origin must not get.
    private static let ownersFields = ["authorization:", "cookie:"]

    /// Scheme, host and port of a URL as written.
    private static func origin(_ url: String) -> Substring {
        guard let mark = url.firstRange(of: "://") else { return url[...] }
        let end = url[mark.upperBound...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        return url[..<end]
    }

    /// Where the last response redirects to; nil if it does not.
    private var redirectTarget: String? {
        guard let easy else { return nil }
        return sluice_curl_info_string(easy, CURLINFO_REDIRECT_URL).map { String(cString: $0) }
    }

    /// Sends one request; with a way, the bodies of redirects are dropped.
    private func send(
        _ request: Request, take: @escaping (UnsafeRawBufferPointer) -> Bool
    ) throws(Failure) -> Answer {
        guard let easy else { throw Failure(kind: .other, reason: "libcurl does not start") }
        var fields: UnsafeMutablePointer<curl_slist>?
        for line in request.fields { fields = curl_slist_append(fields, line) }
        defer { curl_slist_free_all(fields) }
        curl_easy_reset(easy)
        Self.set(easy, request)
        _ = sluice_curl_set_list(easy, CURLOPT_HTTPHEADER, fields)
        let head = HeadReceiver()
        let dropsRedirects = request.followsRedirects && request.way != nil
        let receiver = Receiver { bytes in
            let status = sluice_curl_info_long(easy, CURLINFO_RESPONSE_CODE)
            if dropsRedirects, (300..<400).contains(status), head.namesLocation { return true }
            return take(bytes)
        }
        sluice_curl_set_write(
            easy,
            { bytes, size, count, context in
                guard let context, let bytes else { return 0 }
                let raw = UnsafeRawBufferPointer(start: bytes, count: size * count)
                let receiver = Unmanaged<Receiver>.fromOpaque(context).takeUnretainedValue()
                return receiver.take(raw) ? raw.count : 0
            }, Unmanaged.passUnretained(receiver).toOpaque())
        if request.keepsFields || dropsRedirects {
            sluice_curl_set_header(
                easy,
                { bytes, size, count, context in
                    guard let context, let bytes else { return 0 }
                    let raw = UnsafeRawBufferPointer(start: bytes, count: size * count)
                    Unmanaged<HeadReceiver>.fromOpaque(context).takeUnretainedValue().take(raw)
                    return raw.count
                }, Unmanaged.passUnretained(head).toOpaque())
        }
        let way = request.way?(easy, request.url)
        let result = withExtendedLifetime((receiver, head, way)) { curl_easy_perform(easy) }
        var answer = Self.answer(easy)
        if request.keepsFields { answer.fields = head.fields }
        guard result == CURLE_OK else {
            var failure = Self.failure(easy, result)
            if failure.kind == .stopped { failure.answer = answer }
            throw failure
        }
        return answer
    }

    private static func answer(_ easy: UnsafeMutableRawPointer) -> Answer {
        let phases = Phases(
            name: Int64(sluice_curl_info_offset(easy, CURLINFO_NAMELOOKUP_TIME_T)),
            connect: Int64(sluice_curl_info_offset(easy, CURLINFO_CONNECT_TIME_T)),
            secure: Int64(sluice_curl_info_offset(easy, CURLINFO_APPCONNECT_TIME_T)),
            firstByte: Int64(sluice_curl_info_offset(easy, CURLINFO_STARTTRANSFER_TIME_T)))
        return Answer(
            status: sluice_curl_info_long(easy, CURLINFO_RESPONSE_CODE),
            url: sluice_curl_info_string(easy, CURLINFO_EFFECTIVE_URL).map { String(cString: $0) },
            phases: phases)
    }

    /// Sends one request and collects the body.
    ///
    /// - Parameters:
    ///   - request: what to send.
    ///   - limit: the most bytes that are accepted; more cause a failure of the kind `stopped`.
    /// - Returns: the response and its body.
    /// - Throws: if there is no complete response.
    package func body(
        of request: Request, upTo limit: Int
    ) throws(Failure) -> (answer: Answer, bytes: [UInt8]) {
        var bytes: [UInt8] = []
        let answer = try perform(request) { piece in
            guard piece.count <= limit - bytes.count else { return false }
            bytes.append(contentsOf: piece)
            return true
        }
        return (answer, bytes)
    }

    private static func set(_ easy: UnsafeMutableRawPointer, _ request: Request) {
        _ = sluice_curl_set_string(easy, CURLOPT_URL, request.url)
        _ = sluice_curl_set_long(easy, CURLOPT_PATH_AS_IS, 1)
        _ = sluice_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = sluice_curl_set_string(easy, CURLOPT_PROXY, "")
        _ = sluice_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        if request.followsRedirects, request.way == nil {
            _ = sluice_curl_set_string(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
            _ = sluice_curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 1)
            _ = sluice_curl_set_long(easy, CURLOPT_MAXREDIRS, mostRedirects)
        }
        if request.decodesContent { _ = sluice_curl_set_string(easy, CURLOPT_ACCEPT_ENCODING, "") }
        if request.failsOnErrorStatus { _ = sluice_curl_set_long(easy, CURLOPT_FAILONERROR, 1) }
        if let range = request.range {
            let text = "\(range.lowerBound)-\(range.upperBound)"
            _ = sluice_curl_set_string(easy, CURLOPT_RANGE, text)
        }
        if let userAgent = request.userAgent {
            _ = sluice_curl_set_string(easy, CURLOPT_USERAGENT, userAgent)
        }
        if let authority = request.authority {
            _ = sluice_curl_set_string(easy, CURLOPT_CAINFO, authority)
        }
        if let credentials = request.credentials {
            _ = sluice_curl_set_string(easy, CURLOPT_USERPWD, credentials)
        }
        if var content = request.content {
            // The size first: libcurl copies that many bytes (CURLOPT_COPYPOSTFIELDS(3)).
            _ = sluice_curl_set_offset(
                easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(content.count))
            content.withUnsafeMutableBytes {
                _ = sluice_curl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress)
            }
        }
        _ = sluice_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
        setLimits(easy, request)
    }

    private static func setLimits(_ easy: UnsafeMutableRawPointer, _ request: Request) {
        _ = sluice_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT, request.connectSeconds)
        if let milliseconds = request.milliseconds {
            _ = sluice_curl_set_long(easy, CURLOPT_TIMEOUT_MS, max(1, milliseconds))
        }
        if let stallSeconds = request.stallSeconds {
            _ = sluice_curl_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, 1)
            _ = sluice_curl_set_long(easy, CURLOPT_LOW_SPEED_TIME, stallSeconds)
        }
    }

    private static func failure(_ easy: UnsafeMutableRawPointer, _ result: CURLcode) -> Failure {
        let kind: Failure.Kind =
            switch result {
            case CURLE_COULDNT_CONNECT: .refused
            case CURLE_WRITE_ERROR: .stopped
            case CURLE_PEER_FAILED_VERIFICATION: .untrusted
            case CURLE_SSL_CACERT_BADFILE: .noAuthority
            case CURLE_OPERATION_TIMEDOUT:
                sluice_curl_info_long(easy, CURLINFO_NUM_CONNECTS) > 0 ? .unanswered : .unconnected
            default: .other
            }
        return Failure(kind: kind, reason: String(cString: curl_easy_strerror(result)))
    }
}
