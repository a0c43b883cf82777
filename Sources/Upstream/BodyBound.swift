// The bound of a connection where the body of a response begins and where it ends.
//
// What was granted to a sender stays granted: a connection that ends a response under its whole
// share keeps that share while it is idle, and the next response comes as one burst, which is a
// queue of as many bytes. So the bound falls when a body lacks no more than was granted, and rises
// after the next one has begun. The kernel opens a window that may grow by two segments for each
// that arrives, so that no burst follows from that.
import Numbers

/// Decides the bounds at the ends of a body: pure.
enum BodyBound {
    /// Returns the bound of a connection that begins or ends a body.
    ///
    /// Half: a quarter has hardly shorter queues, and takes twice as long to open.
    static func edge(of share: Int) -> Int {
        min(share, max(Int(QueueWindow.firstWindow), share / 2))
    }

    /// Returns how many bytes of a body have arrived where its end begins, so that all the rest is
    /// granted already; `Int64.max` for a body of unknown length.
    static func endBegins(length: Int64?, share: Int) -> Int64 {
        length.map { max(0, $0.subtractingSaturated(Int64(share))) } ?? .max
    }
}
