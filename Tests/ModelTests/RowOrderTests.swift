import CachePolicy
@testable import DurableState
import HLS
import Logging
import Posix
import Reactor
import Routing
import Store
import Synchronization
import Testing
import URISyntax

@testable import Model

/// Rows are queued under a lock, so that of two threads the one that changes a table last also
/// queues its row last: otherwise the next run would have the other's.
@Suite final class RowOrderTests {
    /// Holds up a thread that reports that its row finds no room in the queue.
    private final class Halt: Sendable {
        let isReached: ThreadSemaphore
        let mayGoOn: ThreadSemaphore
        let isOver = Atomic<Bool>(false)

        init() throws {
            isReached = try ThreadSemaphore()
            mayGoOn = try ThreadSemaphore()
        }

        func report() {
            guard !isOver.load(ordering: .acquiring) else { return }
            isReached.signal()
            _ = mayGoOn.wait(atMost: .seconds(20 as Int64))
        }
    }

    private struct Reports: LogHandler {
        let halt: Halt
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.error

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { halt.report() }
    }

    private let folder: String
    private let halt: Halt
    private let database: StateDatabase

    init() throws {
        let halt = try Halt()
        folder = try makeTemporaryFolder("row-order-tests")
        self.halt = halt
        database = try StateDatabase(
            folder: folder, log: Logger(label: "row-order-tests") { _ in Reports(halt: halt) })
    }

    deinit {
        database.close()
        removeTree(folder)
    }

    private static func fill(_ pending: inout PendingChanges) {
        var number = 0
        func add(_ block: StateValue) -> Bool {
            number += 1
            let slot = StateSlot(table: CrashRecord.table, key: [.text("\(number)")])
            return pending.add(StateChange(slot: slot, values: [block]))
        }
        for bits in stride(from: 20, through: 0, by: -1) {
            let block = StateValue.bytes([UInt8](repeating: 0, count: 1 << bits))
            while add(block) {}
        }
    }

    /// Makes a change on another thread; true if a lock is held while its row is queued.
    private func isHeld(
        _ isLocked: () -> Bool, during change: @escaping @Sendable () -> Void
    ) throws -> Bool {
        try database.commit()
        return try database.committing.withLock { _ -> Bool in
            database.pending.withLock { Self.fill(&$0) }
            let thread = try PosixThread(name: "change", change)
            let isReached = halt.isReached.wait(atMost: .seconds(20 as Int64))
            let found = isReached && isLocked()
            halt.isOver.store(true, ordering: .releasing)
            halt.mayGoOn.signal()
            thread.join()
            _ = database.pending.withLock { $0.takeAll() }
            return found
        }
    }

    /// What changes the rows of a key table.
    enum KeyChange: CaseIterable {
        case learn, refuse, forget, veto
    }

    @Test(arguments: KeyChange.allCases)
    func `rows of key rules are queued while the rules are locked`(_ change: KeyChange) throws {
        let keys = KeyTable(settings: KeySettings(), database: database, counters: Counters())
        let one = try AbsoluteURL("http://h/a?token=1")
        let other = try AbsoluteURL("http://h/a?token=2")
        let same = KeyFingerprint(validator: 1, length: 1, content: 1)
        keys.learn(one, same)
        if change != .learn { keys.learn(other, same) }
        let held = try isHeld({ keys.state.withLockIfAvailable { _ in true } == nil }) {
            switch change {
            case .learn: keys.learn(other, same)
            case .refuse: _ = keys.refuse("token", of: one.origin.description)
            case .forget: keys.forget(one.origin.description)
            case .veto: keys.veto(.length, one, .media)
            }
        }
        #expect(held)
    }

    @Test func `the row of a session's variables is queued while they are locked`() throws {
        let memory = PlaylistMemory(database: database)
        let list = try AbsoluteURL("http://h/m.m3u8")
        let held = try isHeld({ memory.tables.withLockIfAvailable { _ in true } == nil }) {
            memory.remember(["d": "1"], definedIn: list, of: SessionID(7))
        }
        #expect(held)
    }

    @Test func `the row of a live list is queued while no other thread queues one`() throws {
        let at = WallTime(seconds: 1_800_000_000)
        let live = LiveMemory(database: database, counters: Counters(), now: at)
        let base = try AbsoluteURL("http://h/l.m3u8")
        let held = try isHeld({ live.saving.withLockIfAvailable { _ in true } == nil }) {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na\n"
            guard
                let reading = try? LiveReading(
                    Array(text.utf8), base: base, options: PlaylistReading())
            else { return }
            let place = LiveMemory.Place(
                list: ObjectKey(sha256Of: "l"), generation: 1,
                times: EpochTable.Times(requested: at, received: at), keyVersion: 0)
            live.take(reading, at: place) { url, _ in ObjectKey(sha256Of: url.text) }
        }
        #expect(held)
    }
}
