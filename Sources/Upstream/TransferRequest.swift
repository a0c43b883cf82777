// What one origin transfer is to fetch, in which lane, and how long it may take.
package import HTTP
package import Posix
package import URISyntax

/// The class that a transfer waits in.
///
/// Raw values order the lanes, most urgent first.
package enum Lane: Int, Sendable, CaseIterable, Comparable {
    /// Playlists, keys, initialization sections and readers about to run dry: never waits for a
    /// slot within its own cap.
    case express
    /// What a player waits for.
    case playback
    /// What a player will probably ask for next.
    case prefetch
    /// What nobody waits for.
    case background

    /// The name in logs and metrics.
    package var name: String {
        switch self {
        case .express: "express"
        case .playback: "playback"
        case .prefetch: "prefetch"
        case .background: "background"
        }
    }

    package static func < (a: Lane, b: Lane) -> Bool { a.rawValue < b.rawValue }
}

/// How long a transfer may do nothing, per hop of a redirect chain.
package struct TransferTimeouts: Sendable, Hashable {
    /// From handing over to a connection with TLS done, name lookup included; default 5 s.
    package var connect: Interval
    /// From handing over to the first line of the response; default 15 s.
    package var firstByte: Interval
    /// Without a byte of the body, unless we paused it; default 5 s: players give up after eight to ten.
    package var stall: Interval

    package init(
        connect: Interval = .seconds(5), firstByte: Interval = .seconds(15),
        stall: Interval = .seconds(5)
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.stall = stall
    }
}

/// One request to an origin.
package struct TransferRequest: Sendable {
    /// User information in it becomes an Authorization field (Basic) and is not sent in the target.
    package var url: AbsoluteURL
    package var method: HTTPMethod
    /// Request fields, sent as they are.
    ///
    /// Left out: ill-formed ones, those of one connection (RFC 9110 section 7.6.1), Host, Content-
    /// Length, Expect and Accept-Encoding, which follow from the rest.
    package var fields: Fields
    package var body: [UInt8]
    /// A body that is streamed, instead of `body`; it cannot be sent twice, so no redirect is
    /// followed.
    package var upload: Upload?
    /// True sends Accept, Accept-Encoding, Content-Type and User-Agent as `fields` have them, and
    /// none where they have none; for requests that are passed on.
    package var isTransparent: Bool
    /// True opens a connection for this request.
    ///
    /// On one that was used before, a request that the origin did not seem to notice is sent again
    /// by libcurl, which must not happen to one that may not be repeated (RFC 9110 section 9.2.2).
    package var usesFreshConnection: Bool
    /// True opens a connection, unless one is idle, and sends nothing over it.
    var connectsOnly = false
    /// True: asks for gzip, br and deflate and delivers the decoded body.
    ///
    /// False: asks for the identity coding and delivers whatever comes as it is.
    package var decodesContent: Bool
    package var lane: Lane
    /// Whether the origin is asked to hold the request until it has something to say; such
    /// requests take no slot.
    package var isHeld: Bool
    /// Whose request it is: sessions take turns inside a lane.
    package var session: UInt64
    /// Whether 301, 302, 303, 307 and 308 with a Location are followed.
    package var followsRedirects: Bool
    /// The most body bytes that are delivered; one more fails the transfer (`tooLarge`).
    ///
    /// Nil: no limit but the configuration's for decoded bodies.
    package var bodyLimit: Int64?
    package var timeouts: TransferTimeouts
    /// Told what the request costs; nil where nobody asks.
    package var trace: TransferTrace?

    /// A GET of `url` with everything else at its default.
    package init(url: AbsoluteURL, lane: Lane = .playback, session: UInt64 = 0) {
        self.url = url
        self.lane = lane
        isHeld = false
        self.session = session
        method = .get
        fields = Fields()
        body = []
        upload = nil
        isTransparent = false
        usesFreshConnection = false
        decodesContent = false
        followsRedirects = true
        bodyLimit = nil
        timeouts = TransferTimeouts()
    }
}
