// epoll(7) with typed readiness.
import CLinux
import Glibc

/// The events that a descriptor is watched for, or is ready for.
///
/// Hot code uses the named sets: combining members in an array literal runs generic code of another
/// module, 2,000 instructions.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt32

    @inlinable
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    @inlinable
    package static var readable: Readiness { Readiness(rawValue: 0x001) }
    @inlinable
    package static var writable: Readiness { Readiness(rawValue: 0x004) }
    /// Readable, reported to only some of the epoll instances that watch the same socket
    /// (EPOLLEXCLUSIVE).
    @inlinable
    package static var readableByOne: Readiness { Readiness(rawValue: 0x1000_0001) }
    /// An error (EPOLLERR); always reported, never requested.
    @inlinable
    package static var error: Readiness { Readiness(rawValue: 0x008) }
    /// Both directions are shut down (EPOLLHUP); always reported.
    @inlinable
    package static var hangUp: Readiness { Readiness(rawValue: 0x010) }
    /// The peer shut down its sending side (EPOLLRDHUP).
    @inlinable
    package static var peerClosed: Readiness { Readiness(rawValue: 0x2000) }

    @inlinable
    package static var nothing: Readiness { Readiness(rawValue: 0) }
    /// An error or a hang-up: the descriptor is of no more use.
    @inlinable
    package static var broken: Readiness { Readiness(rawValue: 0x018) }
    /// Readable or closed by the peer: a read returns bytes or the end.
    @inlinable
    package static var input: Readiness { Readiness(rawValue: 0x2001) }
}

/// One epoll instance; used on one thread.
package final class Epoll {
    private let descriptor: OwnedDescriptor
    // Only `wait` uses it, which handlers must not call.
    @exclusivity(unchecked) private var ready: [epoll_event]

    /// The most descriptors that one wait reports.
    private static let batch = 256

    package init() throws(SystemError) {
        let number = try check("epoll_create1") { epoll_create1(CInt(EPOLL_CLOEXEC)) }
        descriptor = OwnedDescriptor(taking: number)
        ready = Array(repeating: epoll_event(), count: Self.batch)
    }

    /// Starts watching a descriptor; `token` is returned with each of its events.
    package func add(_ number: CInt, for interest: Readiness, token: UInt64) throws(SystemError) {
        try control(EPOLL_CTL_ADD, number, interest, token)
    }

    /// Changes the events that a watched descriptor is watched for.
    package func modify(_ number: CInt, for interest: Readiness, token: UInt64) throws(SystemError)
    {
        try control(EPOLL_CTL_MOD, number, interest, token)
    }

    /// Stops watching a descriptor; ignores an unknown one, since libcurl may have closed it
    /// already.
    package func remove(_ number: CInt) {
        var unused = epoll_event()
        _ = epoll_ctl(descriptor.number, EPOLL_CTL_DEL, number, &unused)
    }

    private func control(
        _ operation: CInt, _ number: CInt, _ interest: Readiness, _ token: UInt64
    ) throws(SystemError) {
        var event = epoll_event()
        event.events = interest.rawValue
        event.data.u64 = token
        _ = try check("epoll_ctl") { epoll_ctl(descriptor.number, operation, number, &event) }
    }

    /// Waits and calls `visit` for each event; blocks up to `timeout` milliseconds, without limit
    /// for -1.
    package func wait(
        timeout: CInt, _ visit: (_ token: UInt64, _ readiness: Readiness) -> Void
    ) throws(SystemError) {
        let count = epoll_wait(descriptor.number, &ready, CInt(ready.count), timeout)
        if count < 0 {
            if errno == EINTR { return }
            throw SystemError("epoll_wait", code: errno)
        }
        for index in 0..<Int(count) {
            visit(ready[index].data.u64, Readiness(rawValue: ready[index].events))
        }
    }
}
