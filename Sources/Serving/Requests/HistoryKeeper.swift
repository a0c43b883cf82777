// Keeps the history of figures: counts each minute, and writes the file every five, on a separate
// thread.
import Console
package import Model
package import Posix
import Reactor
import Synchronization
import URISyntax

/// The history of figures, and the file that preserves it across restarts.
///
/// Any thread may use it.
package final class HistoryKeeper: Sendable {
    private static let period = Interval.seconds(60 as Int64)
    /// Minutes between two writes of the file.
    private static let writes = 5
    /// The file is below 100 kB; a longer one is not Sluice's.
    private static let longest = 1 << 20

    private struct State {
        var history = FigureHistory()
        var outages = OutageHistory()
        /// The counters at the last count.
        var last = FigureHistory.series.map { _ in Int64(0) }
        var isWritten = true
        /// False if the file could not be read, but may be sound: then this run leaves it alone.
        var mayWrite = true
        var turns = 0
    }

    private let state: Mutex<State>
    private let folder: String
    private let counters: Counters
    private let health: OriginHealth
    private let thread: LoopThread

    private static func path(in folder: String) -> String { folder + "/history.json" }

    /// Restores the history of the last run and starts the thread; blocks on the disk.
    ///
    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - counters: what is counted each minute.
    ///   - health: has the outages of origins.
    /// - Throws: the error of `pthread_create(3)`.
    package init(
        folder: String, counters: Counters, health: OriginHealth
    ) throws(SystemError) {
        self.folder = folder
        self.counters = counters
        self.health = health
        state = Mutex(Self.restored(from: Self.path(in: folder)))
        thread = try LoopThread(name: "history") { _ in }
        thread.handle.enqueue { [self] loop in tick(loop) }
    }

    /// Writes the file if needed and ends the thread; blocks on the disk.
    package func stop() {
        thread.stopAndJoin()
        look()
        write()
    }

    /// The history up to now.
    var json: JSONValue {
        look()
        return state.withLock { Self.document($0, lasting(isCut: false)) }
    }

    /// Returns the outages that have not ended.
    ///
    /// - Parameter isCut: true to end them now, for a run that reads the file after a restart.
    /// - Returns: the outages, in the order in which they began.
    private func lasting(isCut: Bool) -> [OutageHistory.Outage] {
        let (now, wall) = (Monotonic.now(), WallTime.now().seconds)
        return health.marked.filter { $0.mark.state == .down }.map { origin, mark in
            OutageHistory.Outage(
                origin: origin.description, start: wall - Self.seconds(from: mark.since, to: now),
                end: isCut ? wall : nil, reason: mark.reason, isCut: isCut)
        }
    }

    private static func document(
        _ state: State, _ lasting: [OutageHistory.Outage]
    ) -> JSONValue {
        guard case .object(let members) = state.history.json else { return .null }
        return .object(members + [.init("outages", state.outages.json(lasting: lasting))])
    }

    private static func seconds(from start: Monotonic, to end: Monotonic) -> Int64 {
        (end - start).nanoseconds / 1_000_000_000
    }

    private static func restored(from path: String) -> State {
        let now = WallTime.now().seconds
        var (text, mayWrite): ([UInt8], Bool) = ([], true)
        do throws(SystemError) {
            text = try readWhole(path, atMost: longest)
        } catch {
            mayWrite = !error.mayHideSoundFile
        }
        return State(
            history: FigureHistory(reading: text, now: now),
            outages: OutageHistory(reading: text, now: now), mayWrite: mayWrite)
    }

    private func tick(_ loop: EventLoop) {
        loop.schedule(after: Self.period) { [weak self] loop in
            guard let self else { return }
            look()
            let isDue = state.withLock { state in
                state.turns += 1
                return state.turns % Self.writes == 0
            }
            if isDue { write() }
            tick(loop)
        }
    }

    /// Adds what was counted since the last call.
    private func look() {
        let counts = counts
        let (now, monotonic) = (WallTime.now().seconds, Monotonic.now())
        state.withLock { state in
            for outage in health.takeEnded() {
                state.outages.add(
                    OutageHistory.Outage(
                        origin: outage.origin.description,
                        start: now - Self.seconds(from: outage.since, to: monotonic),
                        end: now - Self.seconds(from: outage.until, to: monotonic),
                        reason: outage.reason), now: now)
                state.isWritten = false
            }
            let added = zip(counts, state.last).map { $0 - $1 }
            guard added.contains(where: { $0 > 0 }) else { return }
            state.history.add(added, now: now)
            state.last = counts
            state.isWritten = false
        }
    }

    private var counts: [Int64] {
        [
            counters.value(of: .bytesToPlayers), counters.value(of: .bytesFromOrigin),
            counters.sum(of: Counters.content), counters.sum(of: Counters.kept),
            counters.sum(of: [.originErrors, .ownErrors]),
        ]
    }

    /// Writes the file; an error only loses the history at the next restart.
    private func write() {
        let text = state.withLock { state -> String? in
            // Under the lock, so that none that ends meanwhile is listed twice.
            let lasting = lasting(isCut: true)
            if !state.mayWrite || state.isWritten && lasting.isEmpty { return nil }
            state.isWritten = true
            return Self.document(state, lasting).encoded
        }
        guard let text else { return }
        try? replaceFile(Self.path(in: folder), with: Array((text + "\n").utf8), in: folder)
    }
}
