// Connections that have failed without a word, or that nobody reads any more.
//
// libcurl reuses an HTTP/2 connection until it is told of its end, which it never is where the
// network path has changed (another network, a VPN, a router that forgot it): the kernel gives up
// after a quarter of an hour.
import HTTP
import Posix
import Reactor
import URISyntax

extension UpstreamClient {
    /// How often the path of a request that waits for its response is checked.
    static let pathPatience = Interval.seconds(3)

    /// How long an HTTP/2 connection may hold back the reset of a stream.
    private static let resetPatience = Interval.milliseconds(300)

    /// Ends the connection of a transfer if packets on it do not arrive: requests on it are then sent
    /// again on another.
    func checkPath(_ transfer: Transfer) {
        guard let port = transfer.connection?.localPort, port != 0,
            sockets.hasLostItsPath(localPort: port)
        else { return }
        ledger.figures.connections.lost += 1
        sockets.shutDown(localPort: port)
    }

    /// Handles a connection that a transfer has left before the end of its response, while libcurl
    /// still has the handle: libcurl 7.88 keeps it if it is one of HTTP/2.
    ///
    /// After silence it is not used again, since nobody knows whether anything still comes through.
    /// Otherwise, libcurl sends the reset of the stream no sooner than it writes something else: until
    /// then the origin sends the rest, so that an unused connection is ended.
    func abandon(_ connection: Connection, _ transfer: Transfer) {
        let isMultiplexed =
            transfer.parser.version.major >= 2 || multiplexingOrigins.contains(connection.origin)
        guard isMultiplexed, connection.localPort != 0, users[connection] == nil else { return }
        if transfer.hasTimedOut { return sockets.shutDown(localPort: connection.localPort) }
        guard abandoned.insert(connection).inserted else { return }
        loop.schedule(after: Self.resetPatience) { [weak self] _ in
            guard let self, abandoned.remove(connection) != nil, users[connection] == nil else {
                return
            }
            sockets.shutDown(localPort: connection.localPort)
        }
    }
}
