// The bound of a connection where the body of a response begins, rises to its share, and ends.
//
// What was granted to a sender stays granted: a connection that ends a response under its whole
// share keeps that share while it is idle, and the next response comes as one burst, which is a
// queue of as many bytes. So the bound falls when a body lacks no more than was granted, and rises
// after the next one has begun: in steps, since the kernel opens a window that may grow by two
// segments for each that arrives, which is a second burst where all of the share is missing. So do
// the bounds of background that has given way.
//
// Each response has to open its window again. So all this is for bodies that take many round trips:
// a short one, as on a fast or a long line, would be half as long again.
import Numbers

/// Decides the bounds at the ends of a body: pure.
enum BodyBound {
    /// Returns the bound of a connection that begins or ends a body.
    ///
    /// Half: a quarter has hardly shorter queues, and takes longer to open.
    static func edge(of share: Int) -> Int {
        min(share, max(Int(QueueWindow.firstWindow), share / 2))
    }

    /// Returns whether a body is long enough to open its window in steps: true for one of unknown
    /// length.
    static func isLong(_ length: Int64?, share: Int) -> Bool {
        length.map { $0 / leastShares > Int64(share) } ?? true
    }

    /// A body of as many shares takes as many round trips at least.
    private static let leastShares: Int64 = 8

    /// Returns whether a bound is to rise in steps: a short body has its whole share without any.
    static func rises(after former: Int?, share: Int, length: Int64?) -> Bool {
        guard let former else { return false }
        return former < share && isLong(length, share: share)
    }

    /// Returns the next bound of a connection whose body is neither at its beginning nor at its
    /// end.
    ///
    /// - Parameters:
    ///   - former: its bound so far; nil for none.
    ///   - share: its share of the window.
    ///   - step: by how much it may rise; nil without a limit.
    /// - Returns: bytes.
    static func next(after former: Int?, share: Int, step: Int?) -> Int {
        guard let former, let step else { return share }
        return min(share, former.addingSaturated(max(Int(QueueWindow.leastWindow), step)))
    }

    /// Returns how many bytes of a body have arrived where its end begins, so that all the rest is
    /// granted already; `Int64.max` for a body of unknown length.
    static func endBegins(length: Int64?, share: Int) -> Int64 {
        length.map { max(0, $0.subtractingSaturated(Int64(share))) } ?? .max
    }
}
