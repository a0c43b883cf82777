// The request of one origin transfer: what to fetch, in which lane, with which timeouts.
package import HTTP
package import Posix
package import URISyntax

/// The timeouts of a transfer, per hop of a redirect chain.
package struct TransferTimeouts: Sendable, Hashable {
    /// From adding the hop until the connection with TLS is established, name lookup included;
    /// default 5 s.
    package var connect: Interval
    /// From adding the hop until the first line of the response; default 15 s.
    package var firstByte: Interval
    /// Without a byte of the body, unless the daemon paused it; default 5 s: players give up after
    /// eight to ten.
    package var stall: Interval
    /// From adding the hop until the final head, if interim responses come, each of which starts
    /// `firstByte` again; default 30 s, and never less than `firstByte`.
    ///
    /// Nil where each is passed on to a client, which then sees that the origin is at work.
    package var head: Interval?

    package init(
        connect: Interval = .seconds(5), firstByte: Interval = .seconds(15),
        stall: Interval = .seconds(5), head: Interval? = .seconds(30)
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.stall = stall
        self.head = head
    }
}

/// One request to an origin.
package struct TransferRequest: Sendable {
    /// User information in it becomes an Authorization field (Basic) unless `fields` have one, and
    /// is not sent in the target.
    package var url: AbsoluteURL
    package var method = HTTPMethod.get
    /// Request fields, sent unchanged.
    ///
    /// Dropped: malformed ones, hop-by-hop ones (RFC 9110 section 7.6.1), Host, Content-Length,
    /// Expect and Accept-Encoding, which follow from the other properties.
    package var fields = Fields()
    /// Fields that only the origin of `url` gets, in place of those with the same names in
    /// `fields`, until a redirect leads to another origin.
    package var originFields = Fields()
    package var body: [UInt8] = []
    /// A body that is streamed, instead of `body`; it cannot be sent twice, so redirects are not
    /// followed.
    package var upload: Upload?
    /// True sends Accept, Accept-Encoding, Content-Type and User-Agent exactly as in `fields`, or
    /// not at all; for requests that are passed on.
    package var isTransparent = false
    /// True opens a new connection for this request.
    ///
    /// On a reused one, libcurl repeats a request that the origin seems not to have received, which
    /// must not happen to a request that is not idempotent (RFC 9110 section 9.2.2). A request that
    /// follows one that hung must not hang on another connection that leads nowhere.
    package var usesFreshConnection = false
    /// True opens a connection, unless an idle one exists, and sends nothing on it.
    var connectsOnly = false
    /// True accepts gzip, br and deflate and delivers the decoded body.
    ///
    /// False requests the identity coding and delivers the body as received.
    package var decodesContent = false
    package var lane: Lane
    /// True if the origin may hold the request until there is something new: its wait does not
    /// measure the origin's speed.
    package var isHeld = false
    /// True if such a request takes no slot, and does not count against the limit of its host.
    package var isLongPoll = false
    /// True if it precedes all others of the prefetch lane while it waits there.
    package var goesFirst = false
    /// True if it is for a longer window: it is sent to a host with one connection, too.
    package var fillsWindow = false
    /// True if a former transfer for the same had a slot and failed: it precedes those of its lane
    /// that had none.
    package var isReturning = false
    /// The session of the request: sessions take turns inside a lane.
    package var session: UInt64
    /// True if 301, 302, 303, 307 and 308 with a Location are followed.
    package var followsRedirects = true
    /// The most body bytes that are delivered; more fail the transfer (`tooLarge`).
    ///
    /// Nil: no limit except the configuration's for decoded bodies.
    package var bodyLimit: Int64?
    package var timeouts = TransferTimeouts()
    /// Records the costs of the request; nil if not needed.
    package var trace: TransferTrace?
    /// The parent that the URLs of all hops are asked of; nil for the origins themselves.
    package var parent: ParentWay?
    /// True if the parent is asked for its own sake, so that the origin of the URL need not be
    /// permitted.
    package var isOfParentAlone = false
    /// Credentials that the request is signed with; nil for none.
    package var signature: RequestSignature?

    /// A GET of `url` with everything else at its default.
    package init(url: AbsoluteURL, lane: Lane = .playback, session: UInt64 = 0) {
        self.url = url
        self.lane = lane
        self.session = session
    }
}

/// Credentials for AWS Signature Version 4 (CURLOPT_AWS_SIGV4(3)).
///
/// The request then has no field without a value, since libcurl before 8.3 signs those and does not
/// send them. Its description shows no secret.
package struct RequestSignature: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// As libcurl has it: `aws:amz:REGION:s3`.
    let scope: String
    let user: String
    let password: String

    package init(scope: String, user: String, password: String) {
        self.scope = scope
        self.user = user
        self.password = password
    }

    package var description: String { "signature for \(scope)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
