import Posix
import Reactor

/// The registration and the timer of one connection's socket, on the connection's loop.
///
/// Nothing is registered and no timer is set before the first use: a request that arrives with its
/// connection and closes it needs neither. The connection sets the timer itself, so that a closure
/// is made only if one is needed, and so that a slow timer is reported with the connection's line.
struct SocketWatch {
    private var registration: Registration?
    private var watched = Readiness.nothing
    private var timer: TimerID?
    private var timerDue = Monotonic(nanoseconds: 0)

    /// Watches a socket for events, if it is not already watched for them.
    @inline(__always)
    mutating func update(
        _ number: CInt, for wanted: Readiness, on loop: EventLoop, handler: some ReadinessHandler
    ) throws(SystemError) {
        if let registration {
            if wanted != watched { try loop.update(registration, for: wanted) }
        } else {
            registration = try loop.watch(number, for: wanted, handler: handler)
        }
        watched = wanted
    }

    /// Returns true if the timer has to be set for a deadline; one that is set for a later time is
    /// cancelled.
    ///
    /// A timer for an earlier time stays: a later deadline is noticed when it fires, so that a
    /// request costs no timer.
    @inline(__always)
    mutating func needsTimer(for deadline: Monotonic, on loop: EventLoop) -> Bool {
        guard let timer else { return true }
        if timerDue <= deadline { return false }
        loop.cancel(timer)
        self.timer = nil
        return true
    }

    /// Records the timer that was set for a deadline.
    @inline(__always)
    mutating func note(_ timer: TimerID, for deadline: Monotonic) {
        self.timer = timer
        timerDue = deadline
    }

    /// Records that the timer has fired.
    mutating func noteFired() { timer = nil }

    /// Cancels the timer and the registration; `isClosing` if the socket is closed next.
    mutating func cancel(on loop: EventLoop, isClosing: Bool) {
        if let timer { loop.cancel(timer) }
        timer = nil
        if let registration { loop.cancel(registration, isClosing: isClosing) }
        registration = nil
    }
}
