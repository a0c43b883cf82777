// One thread's loop: readiness, timers and jobs from other threads.
//
// Everything that a loop owns (connections, transfers, readers) is a plain class that only the
// loop's thread touches. Other threads reach it through `LoopHandle.enqueue` and nothing else.
//
// A round is: wait for readiness, run the handlers of ready descriptors, run due timers, run the
// mailbox, then run what was put off to the end of the round. Work that many events of one round
// ask for (writing gathered bytes, waking readers) belongs there.
import Glibc
package import Posix

/// Told when a watched descriptor is ready.
package protocol ReadinessHandler: AnyObject {
    /// Called on the loop's thread. It may cancel its own or any other registration.
    func ready(_ readiness: Readiness, on loop: EventLoop)
}

/// Names one registration of one loop; stays unique after the descriptor is closed and its number
/// reused, because the generation is part of it.
package struct Registration: Hashable, Sendable {
    fileprivate let slot: UInt32
    fileprivate let generation: UInt32

    fileprivate var token: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
}

/// The loop.
///
/// Not Sendable: made on, and used by, one thread.
package final class EventLoop {
    private struct Slot {
        var generation: UInt32 = 0
        var descriptor: CInt = -1
        var handler: (any ReadinessHandler)?
    }

    /// How other threads reach this loop.
    package let handle: LoopHandle
    // Both are stored whole and read whole, so that accesses cannot overlap; checking that costs as
    // much as ten reads.
    /// The monotonic time of this round; read once a round.
    @exclusivity(unchecked) package private(set) var now: Monotonic
    /// The wall time of this round; read once a round.
    @exclusivity(unchecked) package private(set) var wallNow: WallTime

    private let epoll: Epoll
    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    // Like these: no call leads out of the loop while one of them is read or changed.
    @exclusivity(unchecked) private var timers = TimerHeap()
    @exclusivity(unchecked) private var roundEnd: [ScheduledWork] = []
    // Empty, with the room of those that ran last.
    private var spareRoundEnd: [ScheduledWork] = []
    private var spareJobs: [LoopHandle.SentJob] = []
    private let clock: LoopClock
    /// Told of work that held the loop for too long; nil for loops whose work may block.
    private let onHold: LoopHold.Observer?
    /// When the work that runs now began, or the work before it ended.
    @exclusivity(unchecked) private var workBegan: Monotonic
    @exclusivity(unchecked) private var running = true
    private let thread = pthread_self()

    /// The token of the mailbox's eventfd; no slot can have it.
    private static let mailboxToken = UInt64.max

    /// What a loop needs of the system; may be made on another thread than the loop's, so that a
    /// shortage is reported to whoever starts the thread.
    struct Resources {
        fileprivate let handle: LoopHandle
        fileprivate let clock: LoopClock
        fileprivate let epoll: Epoll

        init(handle: LoopHandle, clock: LoopClock) throws(SystemError) {
            self.handle = handle
            self.clock = clock
            if case .manual(let manual) = clock { manual.join(handle) }
            epoll = try Epoll()
            try epoll.add(handle.wakeDescriptor, for: .readable, token: mailboxToken)
        }
    }

    /// Makes a loop for the calling thread.
    ///
    /// - Parameters:
    ///   - handle: how other threads will reach it.
    ///   - clock: what `now`, `wallNow` and timers go by.
    ///   - onHold: told of each piece of work that took longer than `LoopHold.limit`.
    /// - Throws: `SystemError` when the system has no descriptor left.
    package convenience init(
        handle: LoopHandle, clock: LoopClock = .system, onHold: LoopHold.Observer? = nil
    ) throws(SystemError) {
        self.init(try Resources(handle: handle, clock: clock), onHold: onHold)
    }

    /// Makes a loop for the calling thread of what was prepared for it.
    init(_ resources: Resources, onHold: LoopHold.Observer?) {
        handle = resources.handle
        clock = resources.clock
        self.onHold = onHold
        epoll = resources.epoll
        workBegan = .now()
        (now, wallNow) = clock.times
    }

    /// True on the thread that made the loop.
    package var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

    // MARK: Readiness

    /// Watches a descriptor.
    ///
    /// The caller keeps it open until it has cancelled.
    package func watch(
        _ descriptor: CInt, for interest: Readiness, handler: any ReadinessHandler
    ) throws(SystemError) -> Registration {
        let index: UInt32
        if let free = freeSlots.popLast() {
            index = free
        } else {
            index = UInt32(slots.count)
            slots.append(Slot())
        }
        let generation = slots[Int(index)].generation &+ 1
        let registration = Registration(slot: index, generation: generation)
        do throws(SystemError) {
            try epoll.add(descriptor, for: interest, token: registration.token)
        } catch {
            freeSlots.append(index)
            throw error
        }
        slots[Int(index)] = Slot(generation: generation, descriptor: descriptor, handler: handler)
        return registration
    }

    /// Changes what a registration waits for.
    package func update(_ registration: Registration, for interest: Readiness) throws(SystemError) {
        let slot = slots[Int(registration.slot)]
        precondition(
            slot.generation == registration.generation, "a cancelled registration was updated")
        try epoll.modify(slot.descriptor, for: interest, token: registration.token)
    }

    /// Ends a registration: its handler is not called again, not even for events already reported.
    ///
    /// - Parameters:
    ///   - registration: what `watch` gave.
    ///   - isClosing: true where the caller closes the only descriptor of the socket next, with which
    ///     the kernel lets go of it by itself (epoll(7)).
    package func cancel(_ registration: Registration, isClosing: Bool = false) {
        let index = Int(registration.slot)
        guard slots[index].generation == registration.generation, slots[index].handler != nil else {
            return
        }
        if !isClosing { epoll.remove(slots[index].descriptor) }
        slots[index].handler = nil
        slots[index].descriptor = -1
        freeSlots.append(registration.slot)
    }

    // MARK: Time

    /// Runs `body` once, on this loop, no earlier than `delay` from this round.
    @discardableResult
    package func schedule(
        after delay: Interval, file: StaticString = #fileID, line: UInt = #line,
        _ body: @escaping (EventLoop) -> Void
    ) -> TimerID {
        let work = ScheduledWork(body: body, site: CallSite(file, line))
        return timers.add(deadline: now + delay, work)
    }

    /// Takes a timer back; one that has run is ignored.
    package func cancel(_ timer: TimerID) {
        timers.cancel(timer)
    }

    // MARK: Rounds

    /// Runs `body` at the end of this round, after all events, timers and jobs; from there, at the
    /// end of the next, which follows without waiting.
    package func atRoundEnd(
        file: StaticString = #fileID, line: UInt = #line, _ body: @escaping (EventLoop) -> Void
    ) {
        roundEnd.append(ScheduledWork(body: body, site: CallSite(file, line)))
    }

    /// Ends `run` after this round.
    package func stop() {
        running = false
    }

    /// Runs rounds until `stop`; blocks the calling thread, which must be the one that made the loop.
    package func run() {
        precondition(isCurrent, "a loop runs on the thread that made it")
        while running {
            runRound()
        }
        // Jobs sent by threads that did not know yet: run them so that what they hold is let go.
        handle.close()
        runJobs()
        while !roundEnd.isEmpty { runRoundEnd() }
    }

    private func runRound() {
        let timeout = roundEnd.isEmpty ? timeToNextTimer() : 0
        var mailboxIsReady = false
        do throws(SystemError) {
            var isFirst = true
            try epoll.wait(timeout: timeout) { token, readiness in
                if isFirst {
                    readClocks()
                    isFirst = false
                }
                if token == Self.mailboxToken {
                    mailboxIsReady = true
                } else {
                    dispatch(token, readiness)
                }
            }
            if isFirst { readClocks() }
        } catch {
            // EBADF and EINVAL are the only ways left: a fault of this program.
            preconditionFailure("the loop cannot wait: \(error)")
        }
        // A timer that sets itself again without delay waits for the next round, or the events of
        // the others would never be seen.
        let mark = timers.mark
        while let timer = timers.popDue(at: now, setBefore: mark) {
            timer.body(self)
            noteEnd(of: .timer(timer.site))
        }
        if mailboxIsReady {
            runJobs()
        }
        runRoundEnd()
    }

    private func runJobs() {
        var jobs: [LoopHandle.SentJob] = []
        swap(&jobs, &spareJobs)
        handle.takeJobs(into: &jobs)
        for job in jobs {
            job.run(self)
            noteEnd(of: .job(job.site))
        }
        Self.empty(&jobs)
        swap(&jobs, &spareJobs)
    }

    /// Keeps the room of a list, unless that is much.
    private static func empty<Element>(_ list: inout [Element]) {
        list.removeAll(keepingCapacity: list.capacity <= 64)
    }

    /// What epoll_wait(2) is given; a clock that is moved by hand wakes the loop itself.
    private func timeToNextTimer() -> CInt {
        switch clock {
        case .system: timers.timeout(from: .now())
        case .manual(let manual): timers.timeout(from: manual.now) == 0 ? 0 : -1
        }
    }

    private func readClocks() {
        (now, wallNow) = clock.times
        // How long work takes is told by the system's clock, which is not read twice for it.
        if case .system = clock { workBegan = now } else { workBegan = .now() }
    }

    /// Reports the work that has just ended if it held the loop for too long.
    @inline(__always)
    private func noteEnd(of work: @autoclosure () -> LoopHold.Work) {
        guard let onHold else { return }
        let end = Monotonic.now()
        let duration = end - workBegan
        workBegan = end
        if duration > LoopHold.limit { onHold(LoopHold(work: work(), duration: duration)) }
    }

    private func dispatch(_ token: UInt64, _ readiness: Readiness) {
        let slot = slots[Int(UInt32(truncatingIfNeeded: token))]
        guard slot.generation == UInt32(truncatingIfNeeded: token >> 32) else { return }
        guard let handler = slot.handler else { return }
        handler.ready(readiness, on: self)
        noteEnd(of: .handler(String(describing: type(of: handler))))
    }

    private func runRoundEnd() {
        if roundEnd.isEmpty { return }
        var bodies: [ScheduledWork] = []
        swap(&bodies, &spareRoundEnd)
        swap(&bodies, &roundEnd)
        for work in bodies {
            work.body(self)
            noteEnd(of: .roundEnd(work.site))
        }
        Self.empty(&bodies)
        swap(&bodies, &spareRoundEnd)
    }
}
