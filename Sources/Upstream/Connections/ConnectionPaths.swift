// Connections that have failed without a word, or that nobody reads any more.
//
// libcurl reuses an HTTP/2 connection until it is told of its end, which it never is where the
// network path has changed (another network, a VPN, a router that forgot it): the kernel gives up
// after a quarter of an hour.
import CCurl
import HTTP
import Posix
import Reactor
import URISyntax

extension UpstreamClient {
    /// How often the path of a request that waits for its response is checked.
    static let pathPatience = Interval.seconds(3)

    /// After how many repetitions of a packet a connection is ended on which nothing is lost by
    /// that: 1.4 s or more without an acknowledgement.
    private static let mostRepetitions = 3
    /// The same for a connection that others receive bodies on, or send something on that cannot be
    /// sent again: 6 s or more, which a change of the access point seldom takes.
    private static let mostRepetitionsBesideBodies = 5

    /// How long an HTTP/2 connection may hold back the reset of a stream.
    private static let resetPatience = Interval.milliseconds(300)

    /// Ends the connection of a transfer if packets on it do not arrive: requests on it are then
    /// sent again on another.
    func checkPath(_ transfer: Transfer) {
        guard transfer.isRepeatable, let connection = transfer.connection,
            connection.localPort != 0
        else { return }
        let count = sockets.retransmissions(localPort: connection.localPort)
        guard count >= Self.mostRepetitions else { return }
        let losesNothing = attached.values.allSatisfy { other in
            other.connection != connection || other.isRepeatable && other.hasNoHead
        }
        guard losesNothing || count >= Self.mostRepetitionsBesideBodies,
            sockets.shutDown(localPort: connection.localPort)
        else { return }
        ledger.figures.connections.lost += 1
    }

    /// Handles a connection that a transfer has left before the end of its response, while libcurl
    /// still has the handle: libcurl 7.88 keeps it if it is one of HTTP/2.
    ///
    /// After silence it is not used again, since nobody knows whether anything still comes through.
    /// Otherwise, libcurl sends the reset of the stream no sooner than it writes something else:
    /// until then the origin sends the rest, so that an unused connection is ended.
    func abandon(_ connection: Connection, _ transfer: Transfer) {
        let isMultiplexed =
            transfer.hopState.parser.version.major >= 2
            || versions.isMultiplexing(connection.origin)
        guard isMultiplexed, connection.localPort != 0, users[connection] == 0 else { return }
        if transfer.hasTimedOut {
            sockets.shutDown(localPort: connection.localPort)
            return
        }
        forgetAbandoned(connection)
        abandoned[connection] = loop.schedule(after: Self.resetPatience) { [weak self] _ in
            guard let self, abandoned.removeValue(forKey: connection) != nil,
                users[connection] == 0
            else { return }
            sockets.shutDown(localPort: connection.localPort)
        }
    }

    /// Notes that something is written on a connection, with the reset of any stream.
    func forgetAbandoned(_ connection: Connection) {
        if let timer = abandoned.removeValue(forKey: connection) { loop.cancel(timer) }
    }
}

extension Transfer {
    /// libcurl's errors for a connection that has ended, while it was read or written.
    private static let endsOfConnections = [
        CURLE_HTTP2, CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING,
    ]

    /// libcurl's error for a response that does not begin like one of HTTP: on a kept connection,
    /// the late body of an earlier response that must have none, such as one to HEAD.
    private static let isOfEarlierResponse = CURLE_UNSUPPORTED_PROTOCOL

    /// True if its request may be sent again (RFC 9110 section 9.2.2).
    fileprivate var isRepeatable: Bool {
        request.upload == nil && (hop.isPlainGet || hop.method == .head)
    }

    /// True before the head of the hop's response.
    var hasNoHead: Bool {
        if case .head = hopState.phase { return true }
        return false
    }

    /// True if a kept connection ended, or had bytes of an earlier response, before anything of the
    /// response was received, and libcurl has not sent the request again itself.
    ///
    /// Over HTTP/2 it does not always. Once for each transfer.
    func mayBeRepeated(after code: CURLcode) -> Bool {
        (Self.endsOfConnections.contains(code) || code == Self.isOfEarlierResponse)
            && hasNoHead && hopState.fieldBytes == 0 && isRepeatable && hopState.requests == 1
            && !isNewConnection && !hasBeenRepeated && !request.usesFreshConnection
    }
}
