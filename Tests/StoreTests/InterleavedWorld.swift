// A small store with some objects, and the rules that hold after each step.
import FuzzSupport
import Glibc
import Posix
import Reactor
import Retention
import RetentionLab
import Testing

@testable import Store

/// A store that random steps are made in; the extensions have the steps.
final class InterleavedWorld {
    static let names = ["a", "b", "c"]
    /// Less than the objects would take, so that some lose their names and some are evicted.
    static let budget: Int64 = 5 << 20
    static let punchBytes: Int64 = 64 << 10
    /// How far behind the foremost bytes are kept, as by the daemon's readers.
    static let overlap: Int64 = 8 << 10
    static let patience = Interval.seconds(20 as Int64)
    /// The most objects that the test holds.
    static let mostHeld = 7
    /// Several fills of an object may write a piece each into the same room.
    private static let slack: Int64 = 1 << 20
    /// For what happens when the test asks for it only.
    private static let never = Interval.seconds(3600 as Int64)

    var random: SeededNumbers
    let folder: TemporaryFolder
    var path: String
    /// How many stores were opened.
    private var runs = 0
    private var opened: ObjectStore?
    private let turn: ThreadSemaphore
    var bodies: [KnownBody] = []
    /// The body that was published last under each name.
    var published: [String: KnownBody] = [:]
    var objects: [KnownObject] = []
    /// True if heads may grow: without room for a larger header, it may lack some of the bytes that
    /// are charged.
    let hasLongHeads: Bool
    /// How often readers were ahead of a piece that was written and not shown, at a punch.
    var raced = 0
    private var steps: [String] = []

    init(seed: UInt64) throws {
        random = SeededNumbers(seed: seed)
        hasLongHeads = seed.isMultiple(of: 3)
        turn = try ThreadSemaphore()
        // In memory if there is room: syncs of a disk would take most of the time.
        let memory = "/dev/shm"
        let hasRoom = access(memory, W_OK) == 0 && (freeBytes(at: memory) ?? 0) > 1 << 30
        folder = try TemporaryFolder(in: hasRoom ? memory : "/tmp")
        path = folder.path
        try open()
    }

    var store: ObjectStore {
        get throws { try #require(opened, "the store is open") }
    }

    var lastSteps: String { steps.suffix(30).joined(separator: "\n") }

    func note(_ step: String) { steps.append("\(steps.count): \(step)") }

    func require(_ isTrue: Bool, _ rule: @autoclosure () -> String) throws {
        guard isTrue else { throw BrokenRule(description: rule()) }
    }

    // MARK: Choices

    func roll(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    func roll(in range: Range<Int64>) -> Int64 { Int64.random(in: range, using: &random) }

    func happens(oneIn count: Int) -> Bool { roll(count) == 0 }

    func pick<Value>(_ values: [Value]) -> Value? { values.randomElement(using: &random) }

    // MARK: Runs of the store

    /// Returns the folder of the next run, inside the temporary folder.
    func nextPath() -> String {
        runs += 1
        return "\(folder.path)/\(runs)"
    }

    func open() throws {
        if runs == 0 { path = nextPath() }
        let store = try openStore(path, budget: Self.budget) { configuration in
            configuration.commitBytes = 256 << 10
            configuration.punchBytes = Self.punchBytes
            configuration.commitInterval = Self.never
            configuration.finishedCommitDelay = Self.never
            configuration.indexInterval = Self.never
            configuration.syncInterval = Self.never
            configuration.closeTimeout = Self.patience
            configuration.makePolicy = RetentionPolicyName.lru.makePolicy
        }
        opened = store
        try eventually { store.statistics().isReconciled }
    }

    /// Closes the store, whose objects are held by nobody.
    func close() throws {
        let new = path + "/new"
        opened?.close()
        opened = nil
        try eventually { try listFolder(new).isEmpty }
    }

    /// Ends everything after a broken rule.
    func abandon() {
        objects = []
        opened?.close()
        opened = nil
    }

    /// Waits until the store thread has done what it was asked for.
    func settle() throws {
        guard let worker = try store.core.channel.worker else { return }
        worker.enqueue { [turn] _, _ in turn.signal() }
        try require(turn.wait(atMost: Self.patience), "the store thread answers")
    }

    /// Waits until what was cleared is deleted.
    func deleteCleared() throws {
        let (store, path) = (try self.store, self.path)
        try eventually {
            try store.deletion == Deletion() && !store.core.index.hasSetAside()
                && listFolder(path).allSatisfy { !$0.name.hasPrefix("gone-") }
        }
    }

    /// Ends all fills and readers, and releases all objects.
    func releaseAll() throws {
        for known in objects {
            while !known.fills.isEmpty { try endFill(0, of: known, failure: nil) }
        }
        try check()
        for known in objects {
            for reader in known.readers { leave(reader, of: known) }
        }
        objects = []
        try settle()
    }

    /// Looks at everything a last time, and closes the store.
    func end() throws {
        note("end")
        for name in Self.names { _ = try lookUp(name) }
        for known in objects { try verify(known, 0..<known.body.total) }
        for known in objects {
            while !known.fills.isEmpty { try endFill(0, of: known, failure: nil) }
        }
        for known in objects { discard(known) }
        try check()
        for known in objects {
            try require(!known.readers.contains { $0.isWaiting }, "no reader of \(known) waits")
        }
        try releaseAll()
        for name in Self.names { _ = try lookUp(name) }
        for known in objects { try verify(known, 0..<known.body.total) }
        objects = []
        _ = try store.clear(sparingPinned: false)
        try deleteCleared()
        let left = try store.core.usage.used
        try require(hasLongHeads || left == 0, "no bytes are charged in the end: \(left)")
        try close()
        let path = folder.path
        try? eventually { try openFiles(under: path).isEmpty }
        let open = try openFiles(under: path)
        try require(open.isEmpty, "no file is open in the end: \(open)")
    }

    // MARK: Rules

    /// Checks what holds after each step.
    func check() throws {
        for known in objects {
            let spans = known.object.spans
            let shown = known.body.shown
            try require(
                spans.ranges.allSatisfy { shown.contains($0) },
                "\(known) has \(spans), and only \(shown) was written")
            try require(
                !known.object.isComplete || shown.contains(0..<known.body.total),
                "\(known) is complete with \(shown)")
            try require(
                known.object.total ?? known.body.total == known.body.total,
                "\(known) is said to have \(known.object.total ?? 0) bytes")
            for reader in known.readers { try checkWait(reader, of: known, spans) }
        }
        try checkUsage()
        guard let known = pick(objects), known.isProven,
            let range = known.object.firstPresent(from: roll(in: 0..<known.body.total))
        else { return }
        try verify(known, range.lowerBound..<min(range.upperBound, range.lowerBound + 65_536))
    }

    /// Checks that a reader is woken once there is something to see, and not twice.
    private func checkWait(
        _ reader: KnownReader, of known: KnownObject, _ spans: SpanSet
    ) throws {
        guard case .waiting(let calls, _, let ends) = reader.stage else { return }
        let woken = calls.seen.count
        guard woken == 0 else {
            reader.stage = .idle
            return try require(woken == 1, "a reader of \(known) is woken once")
        }
        try require(
            !spans.contains(reader.offset) && ends == known.ends,
            "a reader of \(known) at \(reader.offset) is woken")
    }

    private func checkUsage() throws {
        if try isWithinBudget() { return }
        // Released objects may be in the mail of the store thread.
        try store.catchUp(within: Self.patience)
        let used = try store.core.usage.used
        try require(isWithinBudget(), "\(used) bytes are below the ceiling")
    }

    private func isWithinBudget() throws -> Bool {
        let windows = objects.reduce(0) { $0 + $1.windowBytes }
        let usage = try store.core.usage
        return usage.used <= usage.ceiling + Self.slack + windows
    }

    /// Compares the present bytes of a range.
    func verify(_ known: KnownObject, _ range: Range<Int64>) throws {
        var offset = range.lowerBound
        while let next = known.object.firstPresent(from: offset),
            next.lowerBound < range.upperBound
        {
            offset = next.lowerBound
            // Unless the comparison with their checksum has just removed them.
            guard case .present(let count) = known.object.state(at: offset) else { continue }
            let part = offset..<min(offset + count, range.upperBound)
            try require(
                known.body.matches(read(known.object, part), part),
                "\(known) has the bytes \(part) that were written")
            offset = part.upperBound
        }
    }
}
