import Model
import Numbers
import Posix
import Reactor
import Store
import Upstream

/// The limit of read-ahead: a film of gigabytes is fetched in a window that moves with its player,
/// so that neither disk nor origin carries what is not watched.
extension Flight {
    /// Pauses the transfer if the foremost reader that depends on it is further behind than the
    /// read-ahead limit.
    ///
    /// The connection's flow control then stops the origin. A reader far ahead of a flight whose
    /// origin ignores ranges depends on it too, and must not wait for one far behind. A flight
    /// without readers is not paused here: it is abandoned or, if that pays, finished.
    func limitReadAhead() {
        if object?.hasManyFiles == true || mustAwaitSlowest() { return pauseForSlowest() }
        let window = services.settings.readAhead
        guard machine.isFilling, !hasWaiters, let writer = body.writer, let object,
            hasSource, let first = machine.fill?.firstOffset, writer.offset - first > window,
            let lead = services.readers.lead(
                object.generation, at: writer.offset, within: reach),
            writer.offset - lead > window
        else { return }
        let now = table.loop.now
        guard machine.pauseTransfer(at: now) else { return }
        pauseTransfer()
        table.notePause(of: self)
        services.counters.add(.readAheadPauses)
        table.ahead.scheduleRoundEnd(table)
        // Resumed at half the window, so that a steady player causes a few long pauses instead of
        // many short ones.
        let bound = LoopBound(self, to: table.loop)
        let foremost = writer.offset.addingSaturated(reach)
        let nearby = (writer.offset - window / 2)...foremost
        services.readers.watch(object.generation, for: nearby, at: writer.offset) {
            bound.enqueue { flight, _ in flight.takeUp() }
        }
        table.loop.schedule(after: services.settings.readAheadPatience) { [weak self] _ in
            self?.endPausedTransfer(since: now)
        }
    }

    /// Pauses the transfer until the slowest reader of a body that is not stored has advanced,
    /// which frees disk space and, of a body in many files, closes some of them.
    private func pauseForSlowest() {
        guard hasSource, machine.pauseTransfer(at: table.loop.now) else { return }
        pauseTransfer()
        table.notePause(of: self)
        services.counters.add(.readAheadPauses)
        if unstored.beginWaiting() { lookAgain() }
    }

    /// Looks for the slowest reader after a while, until the transfer need not wait for it.
    private func lookAgain() {
        let waited = machine.pausedSince.map { table.loop.now - $0 } ?? .zero
        let pause = UnstoredBody.pauseBeforeLook(afterWaiting: waited)
        table.loop.schedule(after: pause) { [weak self] _ in
            guard let self else { return }
            guard let since = machine.pausedSince else { return unstored.endWaiting() }
            passOn()
            if lookForSlowest(since: since) == .end { endPausedTransfer(since: since) }
            let mustWait =
                (object?.hasManyFiles == true || mustAwaitSlowest()) && hasReaderNearby
            guard !mustWait else { return lookAgain() }
            unstored.endWaiting()
            takeUp()
        }
    }

    /// Pauses, then ends a transfer whose origin ignored the requested range and sends bytes that
    /// have no reader.
    func stopBehindAskedRange() {
        let now = table.loop.now
        // A player that has just received the object may not have started to read.
        guard let end = machine.filling?.attempt.askedRange?.end,
            let writer = body.writer,
            hasSource, writer.offset >= end, !hasReaderNearby, machine.pauseTransfer(at: now)
        else { return limitReadAhead() }
        pauseTransfer()
        table.loop.schedule(after: GracePeriods.wayToReader) { [weak self] _ in
            guard let self, machine.pausedSince == now else { return }
            guard isNeeded else { return abandon() }
            takeUp()
        }
    }

    /// Resumes after a reader came near or left; the flight may have no reader any more.
    private func takeUp() {
        guard machine.resumeTransfer(), hasSource else { return }
        resumeTransfer()
        table.ahead.scheduleRoundEnd(table, of: self)
        // Pauses again if the readers moved on only a little, or another one stayed behind.
        limitReadAhead()
    }

    /// Ends a transfer that has been paused since `start`, to free its slot and connection: its
    /// player has paused for long.
    private func endPausedTransfer(since start: Monotonic) {
        if machine.pausedSince == start, mayEndPausedTransfer { endPausedTransfer() }
    }

    /// True if the transfer is paused for readers who lack nothing yet, and who can request the
    /// rest when they get there.
    ///
    /// If the origin does not support requests for the rest, the transfer stays open.
    var mayEndPausedTransfer: Bool {
        guard machine.pausedSince != nil, !hasWaiters, !isStarving, let facts = fillFacts else {
            return false
        }
        return machine.mayContinueLater(facts)
    }

    /// Ends a paused transfer; only bytes on the way to it are received again later.
    func endPausedTransfer() {
        flush()
        guard machine.isFilling else { return }
        perform(machine.close(cause: nil))
    }
}
