import Model
import Posix
import Reactor
import Store
import Upstream

/// How far a flight may run ahead of those who read: a film of gigabytes is fetched as a window
/// that moves with its player, so that neither the disk nor the origin sees what nobody watches.
extension Flight {
    /// Holds the origin back where the nearest reader is more than the read-ahead behind.
    ///
    /// The connection's own flow control does the rest. A flight that nobody reads from is not held
    /// back here: it is abandoned or, where that pays, finished.
    func limitReadAhead() {
        if object?.hasManyFiles == true { return holdForFiles() }
        let window = table.settings.readAhead
        guard machine.isFilling, !hasWaiters, let writer, let object,
            let transfer, let first = machine.fill?.firstOffset, writer.offset - first > window,
            let lead = table.readers.lead(
                object.generation, at: writer.offset, within: table.settings.joinDistance),
            writer.offset - lead > window
        else { return }
        let now = table.loop.now
        guard machine.hold(at: now) else { return }
        transfer.pause()
        table.counters.add(.readAheadPauses)
        table.ahead.setNeedsSettle(table)
        // Taken up again at half the window, so that a steady player causes few long pauses
        // instead of many short ones.
        let bound = LoopBound(self, to: table.loop)
        let foremost = writer.offset + table.settings.joinDistance
        let nearby = (writer.offset - window / 2)...foremost
        table.readers.watch(object.generation, for: nearby) {
            bound.enqueue { flight, _ in flight.takeUp() }
        }
        table.loop.schedule(after: table.settings.readAheadPatience) { [weak self] _ in
            self?.letGo(heldSince: now)
        }
    }

    /// Holds the origin back until the slowest reader of a body in many files has got on, which
    /// closes some of them.
    private func holdForFiles() {
        guard let transfer, machine.hold(at: table.loop.now) else { return }
        transfer.pause()
        table.counters.add(.readAheadPauses)
        lookForFiles()
    }

    private func lookForFiles() {
        table.loop.schedule(after: .milliseconds(50)) { [weak self] _ in
            guard let self, machine.heldSince != nil else { return }
            passOn()
            let mustWait = object?.hasManyFiles == true && table.hasReader(self)
            if mustWait { lookForFiles() } else { takeUp() }
        }
    }

    /// Ends a transfer whose origin ignored the range that it was asked for, and sends what nobody
    /// reads.
    func stopBehindAskedRange() {
        let now = table.loop.now
        // A player that has just been told of the object may be on its way.
        guard case .span(_, let end?)? = machine.filling?.attempt.askedRange, let writer,
            let transfer, writer.offset >= end, !table.hasReader(self), machine.hold(at: now)
        else { return limitReadAhead() }
        transfer.pause()
        table.loop.schedule(after: FlightTable.wayToReader) { [weak self] _ in
            guard let self, machine.heldSince == now else { return }
            guard table.isNeeded(self) else { return abandon() }
            takeUp()
        }
    }

    /// Goes on: a reader came near, or one left, after which this flight may be nobody's.
    private func takeUp() {
        guard machine.release(), let transfer else { return }
        transfer.resume()
        table.ahead.setNeedsSettle(table)
        // Readers that moved on only a little, or another one that stayed behind, hold it again.
        limitReadAhead()
    }

    /// Ends a transfer whose player has paused for long: its slot and its connection are others'
    /// meanwhile.
    ///
    /// The reader asks for the rest when it gets there. An origin that cannot be asked for the rest
    /// keeps its connection.
    private func letGo(heldSince start: Monotonic) {
        guard machine.heldSince == start, !hasWaiters, machine.ranges.contains(.taken),
            let facts = fillFacts,
            machine.job.canBeJoined(facts)
        else { return }
        flush()
        guard machine.isFilling else { return }
        perform(machine.close(cause: nil))
    }
}
