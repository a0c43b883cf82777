// The content of a request, pulled by the handler.
package import Reactor

/// The content of one request, without transfer coding, while its exchange is open.
///
/// Nothing is read from the client unless the handler waits for it, so that a slow handler slows
/// the client down and memory stays bounded by one read. Content that is never requested is
/// discarded after the response, or ends the connection if it is too much.
///
/// Life cycle: call `next` until it returns `wait`, then set `wake`, and repeat; until `end` or
/// `gone`.
package final class RequestBody {
    /// A step of reading content.
    package enum Step: Equatable {
        /// At least one byte.
        case bytes([UInt8])
        /// Nothing yet; `wake` is called when there is more.
        case wait
        /// The content is complete.
        case end
        /// The exchange is over; if the content was invalid, the server itself answers.
        case gone
    }

    /// The length of the content in bytes; nil if only its end determines it.
    package let length: Int64?
    private weak var carrier: (any ExchangeCarrier)?

    /// The callback for more content: set once after each `.wait`, called once, on the loop.
    package var wake: ((EventLoop) -> Void)? {
        didSet { if wake != nil { carrier?.contentIsWanted(of: self) } }
    }

    init(length: Int64?, on carrier: any ExchangeCarrier) {
        self.length = length
        self.carrier = carrier
    }

    /// Returns the next bytes; never blocks.
    ///
    /// The first call that finds nothing sends 100 Continue to a client that waits for it.
    package func next(limit: Int = 1 << 16) -> Step {
        precondition(limit > 0, "a request for \(limit) bytes")
        return carrier?.nextContent(of: self, limit: limit) ?? .gone
    }

    /// Detaches the body from its connection or stream.
    func end() {
        carrier = nil
        wake = nil
    }
}
