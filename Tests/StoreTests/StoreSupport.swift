// Folders, stores and bodies for the tests of this target.
import Glibc
import Logging
import Posix
import Store
import Synchronization
import Testing

/// A temporary folder, removed with its content.
final class TemporaryFolder: Sendable {
    let path: String

    init(in parent: String = "/tmp") throws {
        var template = Array("\(parent)/store-tests-XXXXXX".utf8CString)
        let made = try #require(mkdtemp(&template))
        path = String(cString: made)
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        for entry in (try? listFolder(path)) ?? [] {
            if entry.isFolder {
                remove("\(path)/\(entry.name)")
            } else {
                unlink("\(path)/\(entry.name)")
            }
        }
        rmdir(path)
    }
}

/// Copies a folder as it is now, as a process killed now would leave it.
func copyFolder(_ from: String, to path: String, except: Set<String> = []) throws {
    try makeFolder(path)
    for entry in try listFolder(from) where !except.contains(entry.name) {
        let (source, target) = ("\(from)/\(entry.name)", "\(path)/\(entry.name)")
        if entry.isFolder {
            try copyFolder(source, to: target)
        } else {
            try writeFile(target, try readFile(source))
        }
    }
}

func readFile(_ path: String) throws -> [UInt8] {
    try readWhole(path, atMost: .max)
}

func writeFile(_ path: String, _ bytes: [UInt8]) throws {
    let file = try openFile(path, flags: O_RDWR | O_CREAT | O_TRUNC)
    try write(bytes, to: file.number, at: 0)
}

func readBytes(_ file: CInt, at offset: Int64, count: Int) throws -> [UInt8] {
    try readBytes(from: file, at: offset, count: count)
}

/// The byte of a body at an offset, so that every reader can verify what it reads.
func bodyByte(_ offset: Int64) -> UInt8 {
    UInt8(truncatingIfNeeded: offset &* 31 &+ offset >> 8)
}

/// The first bytes of a body, after which they repeat: the bytes of an offset and of 65,536 more are
/// the same.
private let bodyPeriod = (0..<65_536).map(bodyByte)

/// The bytes of a body at a range; copied, since one by one they are slow in a debug build.
func body(_ range: Range<Int64>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    var offset = range.lowerBound
    while offset < range.upperBound {
        let start = Int(offset & 0xFFFF)
        let end = min(bodyPeriod.count, start + Int(range.upperBound - offset))
        bytes += bodyPeriod[start..<end]
        offset += Int64(end - start)
    }
    return bytes
}

/// Reads bytes of a body as a server would, by descriptor and offset.
func read(_ object: StoredObject, _ range: Range<Int64>) throws -> [UInt8] {
    try readBytes(
        object.descriptor.number, at: object.bodyOffset + range.lowerBound, count: range.count)
}

/// Fills a range at once.
func fill(_ object: StoredObject, _ range: Range<Int64>) throws {
    var writer = FillWriter(object, from: range.lowerBound, to: range.upperBound)
    try body(range).withUnsafeBytes { try writer.append($0) }
    writer.end(failure: nil)
}

/// Opens a store with a logger that logs only critical messages.
func openStore(
    _ path: String, budget: Int64 = 1 << 40,
    _ change: (inout StoreConfiguration) -> Void = { _ in }
) throws -> ObjectStore {
    var configuration = StoreConfiguration(budgetBytes: budget, minFreeBytes: 0)
    change(&configuration)
    var log = Logger(label: "store-tests")
    log.logLevel = .critical
    return try ObjectStore(folder: path, configuration: configuration, log: log)
}

func describe(
    _ name: String, total: Int64?, isStorable: Bool = true, created: WallTime = .now()
) -> ObjectDescription {
    ObjectDescription(
        key: ObjectKey(sha256Of: name), url: "https://cdn.example.com/\(name)", role: 7,
        head: Array("head of \(name)".utf8), total: total, created: created, isStorable: isStorable)
}

extension ObjectStore {
    /// Publishes an object, complete by default.
    @discardableResult
    func add(_ name: String, total: Int64, filled: Range<Int64>? = nil) throws -> StoredObject {
        let object = try create(describe(name, total: total))
        try publish(object)
        try fill(object, filled ?? 0..<total)
        finish(object)
        return object
    }

    func find(_ name: String) -> StoredObject? {
        lookup(ObjectKey(sha256Of: name))
    }

    /// The URL saved under a short ID; nil if none is known, or the index cannot be read.
    func longURL(id: [UInt8]) -> String? { try? savedURL(id: id) }

    /// Reads an object as a player does.
    func watch(_ name: String) {
        guard let object = find(name) else { return }
        noteRead(object, bytes: object.presentBytes)
    }

    func flushed() throws {
        let isDone = try flush(within: .seconds(20 as Int64))
        #expect(isDone)
    }
}

/// The path of an object's file in a store's folder.
func objectPath(_ folder: String, _ name: String) -> String {
    let hex = ObjectKey(sha256Of: name).hex
    return "\(folder)/objects/\(hex.prefix(2))/\(hex.dropFirst(2))"
}

func exists(_ path: String) -> Bool {
    access(path, F_OK) == 0
}

/// Waits for a condition that another thread fulfils; fails the test after 20 seconds.
func eventually(
    sourceLocation: SourceLocation = #_sourceLocation, _ isTrue: () throws -> Bool
) throws {
    let deadline = Monotonic.now() + .seconds(20 as Int64)
    while try !isTrue() {
        try #require(
            .now() < deadline, "it did not happen in time", sourceLocation: sourceLocation)
        usleep(2000)
    }
}

/// Counts the warnings that contain a text.
struct Told: LogHandler, Sendable {
    private let text: String
    private let found = Found()
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.warning

    init(_ text: String) { self.text = text }

    var count: Int { found.count.load(ordering: .relaxed) }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        if "\(event.message)".contains(text) { found.count.add(1, ordering: .relaxed) }
    }
}

private final class Found: Sendable {
    let count = Atomic<Int>(0)
}
