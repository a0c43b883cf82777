// Flights of bodies that may have no end (decision 36).
//
// A body without a length begins undecided: nothing of it is dropped, and its object has no name
// that a lookup finds. Once it is known to be a live stream, the flight keeps a window of it in an
// object that is not stored, is joined by every request for it, and goes on over another connection
// when the origin breaks off. If it is a file, it is published like any other.
import Endless
import HLS
import HTTP
import Logging
import Model
import Numbers
import Posix
import Reactor
import Store
import URISyntax
import Upstream

extension Flight {
    /// Watches whether the body that begins has an end, unless its head says that it has.
    func watchForEnd(_ head: TransferHead, _ placement: Placement) {
        guard let limits = services.settings.liveWindow, endless == nil, let object,
            placement == Placement(start: 0), mayBeEndless,
            let facts = EndlessHead(head.status, head.fields)
        else { return }
        let now = table.loop.now
        let body = EndlessBody(
            generation: object.generation, key: resource.key, format: facts.format, limits: limits,
            now: now)
        endless = EndlessFill(body, facts, head.fields, now: now)
        machine.extent = .undecided
        services.endless.add(body)
    }

    /// True for what a player opens itself, and for an entry of a channel list.
    private var mayBeEndless: Bool {
        !resource.followsHTTP && resource.role.isOpen && !machine.isPlaylist && !machine.isAhead
            && resource.live.growth == nil
            && terms.method == .get
    }

    /// Goes on over a new connection.
    func goOnEndless(_ head: TransferHead) {
        guard let endless else { return }
        endless.goOn(head.fields, now: table.loop.now)
        excuseFromSlot()
        services.counters.add(.liveResumptions)
    }

    private func excuseFromSlot() {
        transfer?.goesOnWithoutEnd(
            silence: Interval(
                nanoseconds: services.settings.timeouts.stall.nanoseconds.multipliedSaturated(by: 2)
            ))
    }

    /// Handles that bytes were written.
    ///
    /// - Returns: true if the body has no end; false if it is handled like other bodies.
    func didWrite(_ endless: EndlessFill) -> Bool {
        guard let writer = body.writer else { return true }
        let now = table.loop.now
        endless.note(isPaused: machine.pausedSince != nil, now: now)
        switch endless.didWrite(to: writer.offset, now: now) {
        case .undecided: break
        case .endless: becomeEndless()
        case .file:
            machine.extent = .bounded
            forgetEndless()
            publishIfMedia()
        }
        switch machine.extent {
        case .bounded: return false
        // What is undecided is passed on whole.
        case .undecided:
            limitReadAhead()
            endless.note(isPaused: machine.pausedSince != nil, now: now)
        case .endless:
            guard let object else { return true }
            if let end = endless.disposableEnd(
                of: writer.offset, slowest: services.readers.least(object.generation), now: now)
            {
                object.punch(upTo: end)
            }
        }
        return true
    }

    private func becomeEndless() {
        guard let object else { return }
        let refusals = machine.becomeEndless()
        services.store.forgetName(of: object)
        services.counters.add(.liveStreams)
        services.log.info(
            "a live stream is shared at its edge", metadata: ["url": "\(resource.url.redacted)"])
        excuseFromSlot()
        if machine.resumeTransfer() { transfer?.resume() }
        table.ahead.scheduleRoundEnd(table, of: self)
        perform(refusals)
    }

    /// Handles the end of the flight.
    func forgetEndless() {
        guard let endless else { return }
        self.endless = nil
        endless.body.end()
        services.endless.remove(endless.body)
    }
}
