// The content of a request, pulled by whoever wants it.
package import Reactor

/// One request's content, transfer coding removed, while its exchange is open.
///
/// Nothing is read from the client unless somebody waits for it, so that a slow taker slows the
/// client down and memory stays bounded by one read. What is never asked for is thrown away after
/// the response, or ends the connection where it is too much.
///
/// Life: `next` until it says `wait`, then `wake` set, and again; until `end` or `gone`.
package final class RequestBody {
    /// What has come.
    package enum Step: Equatable {
        /// At least one byte.
        case bytes([UInt8])
        /// Nothing yet; `wake` says when.
        case wait
        /// The content is whole.
        case end
        /// The exchange is over; where the content was at fault, the server answers that itself.
        case gone
    }

    /// The bytes of the whole content; nil where only its end will tell.
    package let length: Int64?
    private weak var carrier: (any ExchangeCarrier)?

    /// How to ask for more: set once after each `.wait`, called once, on the loop, when there is.
    package var wake: ((EventLoop) -> Void)? {
        didSet { if wake != nil { carrier?.contentIsWanted(of: self) } }
    }

    init(length: Int64?, on carrier: any ExchangeCarrier) {
        self.length = length
        self.carrier = carrier
    }

    /// The next bytes; never blocks.
    ///
    /// The first call that finds nothing tells a client which waits for that to go on.
    package func next(limit: Int = 1 << 16) -> Step {
        precondition(limit > 0, "a request for \(limit) bytes")
        return carrier?.nextContent(of: self, limit: limit) ?? .gone
    }

    /// Forgets where it came from.
    func end() {
        carrier = nil
        wake = nil
    }
}
