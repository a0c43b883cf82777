// All recordings: running, ended and paused, and their records.
import DurableState
import Glibc
import HLS
package import HTTP
package import Library
import Logging
import Model
import Origin
import Posix
import Reactor
import Routing
import SharedStore
import Store
import Synchronization
import URISyntax

/// The table of recordings; confined to the keeper's loop.
package final class RecordingTable {
    private unowned let keeper: TimeShiftKeeper
    private(set) var running: [String: Recording] = [:]
    private var over: [String: RecordingOrder] = [:]
    /// Recordings that start paused.
    private(set) var paused: [String: RecordingOrder] = [:]
    var pausedPins = PausedPins()
    /// The turns in which figures of running recordings are saved.
    ///
    /// Not at the start: a new run counts anew what is stored of the origin's window.
    private lazy var figureTurns = FigureTurns(now: loop.now)
    var services: TimeShiftServices { keeper.services }
    var loop: EventLoop { keeper.loop }

    /// The most recordings that run in parallel.
    static let mostRunning = 32
    /// The most recordings without anything recorded that are listed; the oldest are removed first.
    private static let mostFailed = 1_000

    init(_ keeper: TimeShiftKeeper) {
        self.keeper = keeper
    }

    /// Why a recording that is known here does not run.
    enum Stopped {
        /// It waits until its user resumes it, after repeated crashes.
        case paused
        /// It ended here, and was not left to another node.
        case over
    }

    /// Returns why a recording is not to run here; nil for one that runs, was left or is unknown.
    func stopped(_ number: String) -> Stopped? {
        func isPart(_ order: RecordingOrder) -> Bool { !order.isLeft && order.number == number }
        return paused.values.contains(where: isPart)
            ? .paused : over.values.contains(where: isPart) ? .over : nil
    }

    /// The part that this node records; nil if it records none.
    func part(of number: String) -> Recording? {
        running.values.first { !$0.order.isLeft && $0.order.number == number }
    }

    /// The ids of all recordings of this node.
    var ids: [String] { Array(running.keys) + over.keys + paused.keys }

    private var count: Int { running.count + over.count + paused.count }

    // MARK: Life cycle

    /// Restores the recordings of the previous run.
    func resume() {
        let records = services.store.state.records(RecordingRecord.self)
        services.sessions.forgetRecordings(besides: Set(records.map(\.id)))
        for record in records {
            guard let order = RecordingOrder(record) else {
                services.log.error(
                    "the record of a recording is damaged and is ignored",
                    metadata: ["id": "\(record.id)"])
                continue
            }
            if order.state.isOver {
                over[order.id] = order
            } else {
                takeUp(order)
            }
        }
        keepOrders()
    }

    package func stop() {
        for recording in running.values {
            recording.didChange = nil
            recording.stop()
            save(recording.order)
        }
        running = [:]
    }

    func tick() {
        for recording in Array(running.values) { recording.tick() }
        for id in figureTurns.next(of: running.keys, now: loop.now) {
            guard let recording = running[id], recording.noteFigures() else { continue }
            services.store.state.put(recording.savedOrder.record)
        }
    }

    private func takeUp(_ order: RecordingOrder) {
        var order = order
        if order.state != .paused {
            guard let reason = services.crashes.verdict(on: order.work, order.id) else {
                return begin(order)
            }
            // Resumed, it goes on with its end, not with the stream.
            if order.state == .finishing { order.ended = order.ended ?? loop.wallNow }
            order.state = .paused
            order.reason = reason
            save(order)
        }
        forgetCrashes(of: order)
        paused[order.id] = order
        let session = SessionTable.unkept(for: order.entry, recording: order.id)
        services.timeShiftThread.note(.paused, of: session.id)
    }

    private func forgetCrashes(of order: RecordingOrder) {
        services.crashes.forget(.recording, order.id)
        services.crashes.forget(.recordingEnd, order.id)
    }

    func begin(_ order: RecordingOrder, isNew: Bool = false) {
        services.crashes.begins(order.work, order.id)
        let recording = Recording(order, services, keeper.loop, isNew: isNew)
        running[order.id] = recording
        services.timeShiftThread.note(.running, of: recording.session.id)
        recording.didChange = { [weak self, unowned recording] in self?.note(recording) }
        recording.didMove = { [weak self, unowned recording] in self?.tellMoved(recording.order) }
        recording.start()
    }

    private func note(_ recording: Recording) {
        let order = recording.order
        guard order.state.isOver, running[order.id] === recording else {
            save(recording.savedOrder)
            return
        }
        running[order.id] = nil
        over[order.id] = order
        if running.count == Self.mostRunning - 1 { services.flights.haveRoom(for: .recording) }
        // What another node goes on with is not over.
        let end = order.isLeft ? nil : version(of: order, .end)
        if save(order, telling: end) { recording.forgetWindows() }
        tellNodes(end)
        forgetCrashes(of: order)
        services.timeShiftThread.note(nil, of: recording.session.id)
        if order.state == .failed { removeOldestFailed() }
    }

    /// Limits the number of failed recordings.
    ///
    /// Others stay until they are forgotten: what they have is pinned until then.
    private func removeOldestFailed() {
        let failed = over.values.filter { $0.state == .failed }
        guard failed.count > Self.mostFailed,
            let oldest = failed.min(by: { $0.started < $1.started })
        else { return }
        over[oldest.id] = nil
        services.store.state.remove(RecordingRecord.self, key: [.text(oldest.id)])
        services.sessions.forgetRecording(
            SessionTable.unkept(for: oldest.entry, recording: oldest.id).id)
        noteRemoved()
    }

    /// Has orders of other nodes tried again that waited for a place in the list.
    private func noteRemoved() {
        if count == RecordingRecord.most - 1 { services.flights.haveRoom(for: .recording) }
    }

    /// Why no other recording can be added; nil if one can.
    var fullness: String? {
        guard running.count < Self.mostRunning else {
            return "\(running.count) recordings run already; stop one first"
        }
        guard count < RecordingRecord.most else {
            return "\(count) recordings are kept already; forget those that are not needed"
        }
        return nil
    }

    /// Saves an order and what the other nodes are then told; if that fails, logs an error and queues
    /// both.
    ///
    /// - Returns: true if it is on the disk.
    @discardableResult
    func save(_ order: RecordingOrder, telling version: SharedOrder? = nil) -> Bool {
        do throws(StateFault) {
            try keep(order, telling: version)
            return true
        } catch {
            services.log.error(
                "the record of a recording cannot be saved", metadata: ["error": "\(error)"])
            // Retried each second, as is every other change of state.
            services.store.state.put(order.record)
            if let version { services.store.state.put(version.record) }
            return false
        }
    }

    private func keep(
        _ order: RecordingOrder, telling version: SharedOrder? = nil
    ) throws(StateFault) {
        let told = version.map { [StateChange($0.record)] } ?? []
        try services.store.state.keep([StateChange(order.record)] + told)
    }

    /// The answer to a change that the disk does not take.
    static func unsaved(_ fault: StateFault) -> AdministrationAnswer {
        .failure(
            .insufficientStorage,
            "the recording is left as it was, since the change cannot be saved: \(fault); make room or check the disk, and ask again"
        )
    }

    // MARK: Requests

    /// Responds to a request under `/api/recordings`; may block on the disk.
    package func answer(_ method: HTTPMethod, _ target: String) -> AdministrationAnswer {
        let request = RequestHead(method: method, target: target)
        let parts = request.path.split(separator: "/").dropFirst(2).map(String.init)
        let isRead = method == .get || method == .head
        switch (parts.count, parts.last) {
        case (0, _) where isRead: return list()
        case (0, _) where method == .post: return start(request.query ?? "")
        case (0, _):
            return .methodNotAllowed(
                allowed: [.get, .head, .post], "recordings are read with GET and begun with POST")
        case (1, let id?) where isRead: return answer(id) { _ in }
        case (1, _):
            return .methodNotAllowed(allowed: [.get, .head], "a recording is read with GET")
        // A change by GET could be made by any page that a browser shows.
        case (2, "stop"), (2, "resume"), (2, "forget"):
            guard method == .post else {
                return .methodNotAllowed(allowed: [.post], "a recording is changed with POST")
            }
            return change(parts[0], parts[1])
        default: return .failure(.notFound, "nothing is at this path; see / for what is")
        }
    }

    private func change(_ id: String, _ action: String) -> AdministrationAnswer {
        do throws(StateFault) {
            switch action {
            case "stop":
                if let answer = stopElsewhere(id) { return answer }
                // An earlier part stands for the one that runs.
                let part = part(of: RecordingOrder.number(of: id))?.order.id ?? id
                if let order = over[part] { return .value(.ok, json(order, nil, wasOver: true)) }
                try resume(part)
                let reason = "it was stopped"
                if let recording = running[part] { try keep(recording.order(finishedFor: reason)) }
                return answer(part) { $0.finish(reason) }
            case "resume":
                if over[id] != nil {
                    return .failure(.conflict, "the recording \(id) is over; start another one")
                }
                if running[id]?.order.state == .finishing {
                    return .failure(
                        .conflict, "the recording \(id) is being finished; start another one")
                }
                try resume(id)
                return answer(id) { _ in }
            default: return try forget(id)
            }
        } catch {
            return Self.unsaved(error)
        }
    }

    private func list() -> AdministrationAnswer {
        let all =
            running.values.map { ($0.order.started, json($0.order, $0)) }
            + (Array(over.values) + paused.values).map { ($0.started, json($0, nil)) }
            + elsewhere.map { ($0.order.started, $0.json) }
        let sorted = all.sorted { $0.0 > $1.0 }.map(\.1)
        return .value(.ok, .object([.init("recordings", .list(sorted))]))
    }

    private func start(_ query: String) -> AdministrationAnswer {
        if let fullness { return .failure(.serviceUnavailable, fullness) }
        do throws(AdministrationRefusal) {
            let order = try RecordingOrder(query: query, now: keeper.loop.wallNow) { [services] in
                services.originURL($0)
            }
            let version = version(of: order, .run)
            do throws(StateFault) {
                try keep(order, telling: version)
            } catch {
                return .failure(
                    .insufficientStorage,
                    "nothing is recorded, since the order cannot be saved: \(error)")
            }
            begin(order, isNew: true)
            tellNodes(version)
            return answer(order.id) { _ in }
        } catch {
            return error.answer
        }
    }

    private func answer(_ id: String, _ change: (Recording) -> Void) -> AdministrationAnswer {
        if let recording = running[id] {
            change(recording)
            return .value(.ok, json(recording.order, recording))
        }
        guard let order = over[id] ?? paused[id] else {
            if let json = elsewhere.first(where: { $0.order.id == id })?.json {
                return .value(.ok, json)
            }
            return .failure(.notFound, "no recording \(id) is known")
        }
        return .value(.ok, json(order, nil))
    }

    /// Starts a paused recording; has no effect on others.
    private func resume(_ id: String) throws(StateFault) {
        guard var order = paused[id] else { return }
        order.state = order.isLeft || order.ended != nil ? .finishing : .running
        order.reason = order.ended == nil ? "" : "it had ended before the daemon crashed"
        try keep(order)
        paused[id] = nil
        pausedPins.forget(id)
        begin(order)
    }

    /// Removes a recording that records no more, with all objects that it alone needs.
    private func forget(_ id: String) throws(StateFault) -> AdministrationAnswer {
        // Forgetting a recording whose end waits for room may be what makes room.
        let finishing = running[id].flatMap { $0.order.state == .finishing ? $0 : nil }
        guard let order = over[id] ?? paused[id] ?? finishing?.order else {
            let isRunning = running[id] != nil
            return .failure(
                isRunning ? .conflict : .notFound,
                isRunning
                    ? "the recording \(id) runs; stop it first" : "no recording \(id) is known")
        }
        let session = services.sessions.session(for: order.entry, recording: order.id)
        // Unless it is over, the other nodes still expect it to be recorded.
        let end = over[id] != nil || order.isLeft ? nil : version(of: order, .end)
        let removal = StateChange(removing: RecordingRecord.self, key: [.text(id)])
        let told = end.map { [StateChange($0.record)] } ?? []
        // What another title needs too is named by its pin. Recordings pin late, and a new run of
        // the daemon knows only what was pinned before.
        try pinShared(besides: id)
        try finishing?.pinShared()
        let title = session.id.number
        let shared = Set(services.store.pin(of: title)?.keys ?? [])
        try services.store.unpin(title: title, with: [removal] + told)
        if let finishing { giveUp(finishing) }
        over[id] = nil
        paused[id] = nil
        services.timeShiftThread.note(nil, of: session.id)
        pausedPins.forget(id)
        noteRemoved()
        // What is shown is of its session.
        let shown = json(order, nil)
        removeWindows(of: order, session)
        services.sessions.forgetRecording(session.id)
        remove(order, session, shared, besides: keysInWindows(of: order))
        tellNodes(end)
        return .value(.ok, shown)
    }

    /// Removes the windows of a forgotten recording, also those that were kept after its end to
    /// tell what its names meant.
    private func removeWindows(of order: RecordingOrder, _ session: Session) {
        let table = services.timeShift
        for chosen in order.lists {
            if let list = table.known(chosen.url, of: session) { table.forget(list) }
            table.files(of: session).remove(table.name(of: chosen.url, in: session))
        }
    }

    /// Ends a recording that has been forgotten while it waited for its end.
    private func giveUp(_ recording: Recording) {
        recording.giveUp()
        running[recording.order.id] = nil
        if running.count == Self.mostRunning - 1 { services.flights.haveRoom(for: .recording) }
        recording.forgetWindows()
        forgetCrashes(of: recording.order)
    }

    /// Removes the objects of a forgotten recording, and those that it shared with recordings
    /// forgotten before it, unless a pin or a window names them.
    private func remove(
        _ order: RecordingOrder, _ session: Session, _ shared: Set<ObjectKey>,
        besides inWindows: Set<ObjectKey>
    ) {
        let title = session.id.number
        let pins = services.store.pins()
        let pinned = Set(pins.map(\.title))
        let kept = inWindows.union(pins.flatMap(\.keys))
        // Nothing plays it without these. The store thread finds the rest, which may take hours
        // while it compares index and folder.
        for url in [order.choice.url] + order.lists.map(\.url) {
            let key = ObjectKey(
                services.names.keys.cacheKey(of: url, session: session, role: .playlist))
            guard !kept.contains(key), services.store.peek(key)?.title == title else { continue }
            services.store.remove(key)
        }
        let known = Set(ids)
        let sessions = services.sessions
        services.store.removeAll(
            ofTitle: title, and: Array(shared),
            where: { entry in
                guard !kept.contains(entry.key) else { return false }
                if entry.title == title { return true }
                guard !pinned.contains(entry.title) else { return false }
                let recording = sessions.session(SessionID(entry.title)).shift.recording
                return recording.map { !known.contains($0) } ?? false
            })
    }
}
