// The event loop of one thread: readiness, timers and jobs from other threads.
//
// Everything that a loop owns (connections, transfers, readers) is a plain class that only the
// loop's thread touches. Other threads reach it only through `LoopHandle.enqueue`.
//
// A round is: wait for readiness, run the handlers of ready descriptors, run due timers, run the
// mailbox's jobs, then run the work deferred to the end of the round. Work that many events of one
// round request (writing gathered bytes, waking readers) is deferred.
import Glibc
package import Posix

/// Handles readiness events of a watched descriptor.
package protocol ReadinessHandler: AnyObject {
    /// Called on the loop's thread. It may cancel its own or any other registration.
    func ready(_ readiness: Readiness, on loop: EventLoop)
}

/// Identifies one registration of one loop; unique even after the descriptor is closed and its
/// number reused, because the generation is part of it.
package struct Registration: Hashable, Sendable {
    fileprivate let slot: UInt32
    fileprivate let generation: UInt32

    fileprivate var token: UInt64 { UInt64(generation) << 32 | UInt64(slot) }
}

/// The event loop of one thread.
///
/// Not Sendable: created and used on one thread.
package final class EventLoop {
    private struct Slot {
        var generation: UInt32 = 0
        var descriptor: CInt = -1
        var handler: (any ReadinessHandler)?
    }

    /// The handle through which other threads reach this loop.
    package let handle: LoopHandle
    // Both are stored and read as a whole, so accesses cannot overlap; checking exclusivity costs
    // as much as ten reads.
    // Read by functions of this module: other modules would check each access for exclusivity
    // whatever the attribute says, at a hundred instructions, ten times in a small hit.
    @exclusivity(unchecked) private var times: (now: Monotonic, wallNow: WallTime)
    /// The monotonic time of this round; read once a round.
    package var now: Monotonic { times.now }
    /// The wall time of this round; read once a round.
    package var wallNow: WallTime { times.wallNow }

    private let epoll: Epoll
    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    // As above: no code outside the loop runs while one of them is read or changed.
    @exclusivity(unchecked) private var timers = TimerHeap()
    @exclusivity(unchecked) private var roundEnd: [ScheduledWork] = []
    // Empty arrays that keep the capacity of those that ran last.
    private var spareRoundEnd: [ScheduledWork] = []
    private var spareJobs: [LoopHandle.SentJob] = []
    private let clock: LoopClock
    /// Called for work that held the loop for too long; nil for loops whose work may block.
    private let onHold: LoopHold.Observer?
    /// When the work now running began, or the work before it ended.
    @exclusivity(unchecked) private var workBegan: Monotonic
    @exclusivity(unchecked) private var running = true
    private let thread = pthread_self()

    /// The token of the mailbox's eventfd; no slot can have it.
    private static let mailboxToken = UInt64.max

    /// The system resources of a loop; may be created on another thread than the loop's, so that a
    /// shortage is reported to the code that starts the thread.
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

    /// Creates a loop for the calling thread.
    ///
    /// - Parameters:
    ///   - handle: the handle for other threads.
    ///   - clock: the source of `now`, `wallNow` and timers.
    ///   - onHold: called for each piece of work that took longer than `LoopHold.limit`.
    /// - Throws: `SystemError` if the system has no descriptor left.
    package convenience init(
        handle: LoopHandle, clock: LoopClock = .system, onHold: LoopHold.Observer? = nil
    ) throws(SystemError) {
        self.init(try Resources(handle: handle, clock: clock), onHold: onHold)
    }

    /// Creates a loop for the calling thread from prepared resources.
    init(_ resources: Resources, onHold: LoopHold.Observer?) {
        handle = resources.handle
        clock = resources.clock
        self.onHold = onHold
        epoll = resources.epoll
        workBegan = .now()
        times = clock.times
    }

    /// Reads the loop's clock, which is ahead of `now` by what this round has taken so far.
    package func readTime() -> Monotonic { clock.times.0 }

    /// True on the thread that created the loop.
    package var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

    // MARK: Readiness

    /// Watches a descriptor.
    ///
    /// The caller keeps it open until it has cancelled the registration.
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

    /// Changes the events that a registration waits for.
    package func update(_ registration: Registration, for interest: Readiness) throws(SystemError) {
        let slot = slots[Int(registration.slot)]
        precondition(
            slot.generation == registration.generation, "a cancelled registration was updated")
        try epoll.modify(slot.descriptor, for: interest, token: registration.token)
    }

    /// Cancels a registration: its handler is not called again, not even for events already
    /// reported.
    ///
    /// - Parameters:
    ///   - registration: from `watch`.
    ///   - isClosing: true if the caller closes the only descriptor of the socket next, which
    ///     makes the kernel remove it from the epoll set (epoll(7)).
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

    /// Cancels a timer; ignores one that has run.
    package func cancel(_ timer: TimerID) {
        timers.cancel(timer)
    }

    // MARK: Rounds

    /// Runs `body` at the end of this round, after all events, timers and jobs; called from such a
    /// body, at the end of the next round, which follows without waiting.
    package func atRoundEnd(
        file: StaticString = #fileID, line: UInt = #line, _ body: @escaping (EventLoop) -> Void
    ) {
        roundEnd.append(ScheduledWork(body: body, site: CallSite(file, line)))
    }

    /// Makes `run` return after this round.
    package func stop() {
        running = false
    }

    /// Runs rounds until `stop`; blocks the calling thread, which must be the one that created the
    /// loop.
    package func run() {
        precondition(isCurrent, "a loop runs on the thread that made it")
        while running {
            runRound()
        }
        // Runs jobs sent before the handle was closed, so that the objects they hold are released.
        handle.close()
        runJobs()
        while !roundEnd.isEmpty { runRoundEnd() }
        releaseAll()
    }

    /// Releases timers and handlers after the last round: they hold objects that hold this loop.
    private func releaseAll() {
        let work = timers.dropAll()
        var handlers: [any ReadinessHandler] = []
        for index in slots.indices {
            if let handler = slots[index].handler { handlers.append(handler) }
            slots[index].handler = nil
        }
        // Only now, since what is released may cancel timers and registrations.
        withExtendedLifetime((work, handlers)) {}
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
            // Only EBADF and EINVAL are left, which are programming errors.
            preconditionFailure("the loop cannot wait: \(error)")
        }
        // A timer that reschedules itself without delay waits for the next round; otherwise events
        // would never be handled.
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

    /// Empties a list and keeps its capacity, unless that is large.
    private static func empty<Element>(_ list: inout [Element]) {
        list.removeAll(keepingCapacity: list.capacity <= 64)
    }

    /// Returns the timeout for epoll_wait(2); a manual clock wakes the loop itself when it is
    /// moved.
    private func timeToNextTimer() -> CInt {
        switch clock {
        case .system: timers.timeout(from: .now())
        case .manual(let manual): timers.timeout(from: manual.now) == 0 ? 0 : -1
        }
    }

    private func readClocks() {
        times = clock.times
        // Durations of work use the system's clock; a time already read from it is reused.
        if case .system = clock { workBegan = now } else { workBegan = .now() }
    }

    /// Reports the work that just ended if it held the loop for too long.
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
