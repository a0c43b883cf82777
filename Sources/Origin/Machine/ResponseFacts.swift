// What a flight reads from the head of a response: pure.
import CachePolicy
import HTTP
import Model
import Numbers
import Posix
import Upstream

/// The part of a response head that a flight decides by.
struct ResponseFacts {
    var status: HTTPStatus
    /// The length of the body, if the head states it.
    var contentLength: Int64?
    /// The text of Content-Length.
    var lengthText: String?
    /// Content-Range, of a 206 or a 416.
    var range: ContentRange?
    /// The origin's Retry-After.
    var retryAfter: Interval?
    /// WWW-Authenticate, of a 401.
    var challenge: String?
    /// True if a part has the content coding of the stored body: a range counts bytes of the
    /// encoded body (RFC 9110 section 14.1), so only parts of one coding can be combined.
    var isCodedAsKnown = true
    /// True if a whole body comes in a content coding, which was not decoded.
    var isCoded = false
    /// True if a part under HTTP's rules has the type of a playlist.
    var namesPlaylist = false
    /// True if a whole body came because its validator is not the one that If-Range named (RFC 9110
    /// section 13.1.5), which does not show that the origin ignores ranges.
    var isOtherVersion = false
    /// True for a 508 of a proxy that the request came back to (RFC 9209 section 2.3), not for
    /// one by which a host limits the use of its resources.
    var isLoop = false
}

extension ResponseFacts {
    /// Reads the facts of a head.
    ///
    /// - Parameters:
    ///   - head: the head.
    ///   - followsHTTP: true if HTTP's rules apply instead of playlist semantics.
    ///   - known: the head of the response whose rest is requested; nil if there is none yet.
    ///   - condition: the validator that was sent as If-Range; nil for none.
    ///   - now: the time.
    init(
        of head: TransferHead, followsHTTP: Bool, known: @autoclosure () -> StoredHead?,
        condition: String? = nil, now: WallTime
    ) {
        self.init(status: head.status, contentLength: head.contentLength)
        switch head.status.rawValue {
        case 200:
            isCoded = !StatedCoding.isSame(head.fields, Fields())
            isOtherVersion = condition.map { Self.hasOther(than: $0, head.fields) } ?? false
        case 206:
            range = ContentRange.parse(head.fields)
            lengthText = head.fields.first(.contentLength)
            isCodedAsKnown = StatedCoding.isSame(head.fields, known()?.fields ?? Fields())
            namesPlaylist = followsHTTP && ContentTypes.isPlaylist(head.fields)
        case 401: challenge = head.fields.combined(.wwwAuthenticate)
        case 416: range = ContentRange.parse(head.fields)
        case 508:
            let error = ProxyStatus.ErrorType.proxyLoopDetected.rawValue
            isLoop = head.fields.combined("Proxy-Status")?.contains(error) ?? false
        case 400...: retryAfter = Self.retryAfter(head.fields, now: now)
        default: break
        }
    }

    /// True if a response states another entity tag or date than the one that If-Range named.
    private static func hasOther(than condition: String, _ fields: Fields) -> Bool {
        let isTag = condition.hasPrefix("\"")
        let present =
            isTag ? EntityTag.parse(fields)?.description : fields.first(.lastModified)
        return present.map { $0 != condition } ?? false
    }

    private static func retryAfter(_ fields: Fields, now: WallTime) -> Interval? {
        guard let text = fields.first(.retryAfter) else { return nil }
        if let seconds = ExternalNumber.integer(text, in: Int64.min...Int64.max) {
            return .seconds(max(0, min(seconds, 86_400)))
        }
        return HTTPDate.parse(text).map { date in
            .seconds(max(0, min(date - (fields.originTime ?? now.seconds), 86_400)))
        }
    }
}
