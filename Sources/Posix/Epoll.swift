// epoll(7) with typed readiness.
import CLinux
import Glibc

/// What a descriptor is watched for, or found ready for.
///
/// Hot code uses the named sets: one that is written as a list of members is put together by generic
/// code of another module, at 2,000 instructions.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt32

    @inlinable
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    @inlinable
    package static var readable: Readiness { Readiness(rawValue: 0x001) }
    @inlinable
    package static var writable: Readiness { Readiness(rawValue: 0x004) }
    /// Readable, told to one of those who watch the same socket (EPOLLEXCLUSIVE).
    @inlinable
    package static var readableByOne: Readiness { Readiness(rawValue: 0x1000_0001) }
    /// Always reported, never asked for (EPOLLERR).
    @inlinable
    package static var error: Readiness { Readiness(rawValue: 0x008) }
    /// Both directions are shut (EPOLLHUP); always reported.
    @inlinable
    package static var hangUp: Readiness { Readiness(rawValue: 0x010) }
    /// The peer shut its sending side (EPOLLRDHUP).
    @inlinable
    package static var peerClosed: Readiness { Readiness(rawValue: 0x2000) }

    @inlinable
    package static var nothing: Readiness { Readiness(rawValue: 0) }
    /// Either way in which a descriptor is of no more use.
    @inlinable
    package static var broken: Readiness { Readiness(rawValue: 0x018) }
    /// Either way in which reading gives something, if only the end.
    @inlinable
    package static var input: Readiness { Readiness(rawValue: 0x2001) }
}

/// Owns one epoll instance; used on one thread.
package final class Epoll {
    private let descriptor: OwnedDescriptor
    private var ready: [epoll_event]

    /// Makes an instance that reports at most `batch` descriptors a wait.
    package init(batch: Int = 256) throws(SystemError) {
        let number = try check("epoll_create1") { epoll_create1(CInt(EPOLL_CLOEXEC)) }
        descriptor = OwnedDescriptor(taking: number)
        ready = Array(repeating: epoll_event(), count: batch)
    }

    /// Starts watching; `token` comes back with each event.
    package func add(_ number: CInt, for interest: Readiness, token: UInt64) throws(SystemError) {
        try control(EPOLL_CTL_ADD, number, interest, token)
    }

    /// Changes what a watched descriptor is watched for.
    package func modify(_ number: CInt, for interest: Readiness, token: UInt64) throws(SystemError)
    {
        try control(EPOLL_CTL_MOD, number, interest, token)
    }

    /// Stops watching; an unknown descriptor is ignored, since libcurl may have closed it already.
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

    /// Waits and hands each event to `visit`; blocks up to `timeout` milliseconds, -1 without end.
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
