/// epoll(7) with typed readiness.
import CLinux
import Glibc

/// What a descriptor is watched for, or found ready for.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let readable = Readiness(rawValue: 0x001)
    package static let writable = Readiness(rawValue: 0x004)
    /// Always reported, never asked for (EPOLLERR).
    package static let error = Readiness(rawValue: 0x008)
    /// Both directions are shut (EPOLLHUP); always reported.
    package static let hangUp = Readiness(rawValue: 0x010)
    /// The peer shut its sending side (EPOLLRDHUP).
    package static let peerClosed = Readiness(rawValue: 0x2000)
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
