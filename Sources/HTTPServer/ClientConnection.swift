import Posix

/// A connection of a client, in the table of its loop: of HTTP/1.x or of HTTP/2.
protocol ClientConnection: AnyObject {
    /// What the connection waits for without a request, and since when; nil while it has one.
    var idleSince: (Idleness, Monotonic)? { get }

    /// Closes the connection for a new one, unless a request has arrived or its client still reads:
    /// what the client sends after the end would make the kernel discard unread bytes.
    func giveWay()
    /// Closes the connection if it is idle; requests in progress are still answered.
    func drain()
    /// Closes the connection immediately; the client sees responses in flight as broken.
    func cut()
}
