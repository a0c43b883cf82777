// The log of `Fixtures/tools/crash-fs.c`: every change of the files below a folder, in order.
import FixtureCDN
import Glibc
import ScenarioSupport

/// The recording library, built by the first test that needs it, and the log that it writes.
final class DiskRecorder: Sendable {
    let logPath: String
    private let temporary: TemporaryFolder
    private let library: String
    private let faultPath: String

    /// Calls that can be made to fail; the order is that of the library.
    enum Fault: Int {
        case open, create, write, sync, rename, unlink, reserve, read, send, readOne
    }

    init() throws {
        temporary = try TemporaryFolder()
        logPath = temporary.file("log")
        library = try Self.builtLibrary()
        faultPath = temporary.file("faults")
        try writeFile(logPath, [])
        try writeFile(faultPath, [UInt8](repeating: 0, count: 4096))
    }

    /// Returns the path of the library, which is built after each change of its source; all runners
    /// share it.
    private static func builtLibrary() throws -> String {
        let source = Fixture.path("tools/crash-fs.c")
        let path = Fixture.repository + "/.build/crash-fs.so"
        var (ofSource, ofLibrary) = (stat(), stat())
        if stat(source, &ofSource) == 0, stat(path, &ofLibrary) == 0,
            ofSource.st_mtim.tv_sec < ofLibrary.st_mtim.tv_sec
        {
            return path
        }
        // Other runners may build it at the same time, or have it loaded: it is replaced whole.
        mkdir(Fixture.repository + "/.build", 0o755)
        let own = "\(path).\(getpid())"
        let built = try Tool.run([
            Tool.cCompiler ?? "cc", "-O1", "-shared", "-fPIC", "-o", own, source, "-ldl",
        ])
        guard built.status == 0 else { throw ScenarioFailure("cc: \(built.stderr)") }
        guard rename(own, path) == 0 else {
            throw ScenarioFailure("cannot rename \(own): error \(errno)")
        }
        return path
    }

    /// The environment of a daemon whose changes of a folder are recorded.
    func environment(_ folder: String, isLogged: Bool = true) -> [(name: String, value: String)] {
        // Libraries that are already preloaded stay, such as the sanitizer's.
        let others = getenv("LD_PRELOAD").map { " " + String(cString: $0) } ?? ""
        let always = [
            (name: "LD_PRELOAD", value: library + others),
            (name: "SLUICE_CRASH_FOLDER", value: folder),
            (name: "SLUICE_CRASH_FAULTS", value: faultPath),
        ]
        return isLogged ? always + [(name: "SLUICE_CRASH_LOG", value: logPath)] : always
    }

    /// Makes a kind of call fail with an error number from now on, or, with 0, work again.
    func fail(_ fault: Fault, with error: Int32) throws {
        let descriptor = open(faultPath, O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let count = withUnsafeBytes(of: error) {
            pwrite(descriptor, $0.baseAddress, $0.count, off_t(fault.rawValue * 4))
        }
        guard count == 4 else { throw ScenarioFailure("cannot set a fault") }
    }

    /// Removes a last record that a kill left incomplete (write(2)).
    ///
    /// The next daemon appends to the log, and its records would begin inside the torn one. Call this
    /// while no daemon runs.
    func dropTornRecord() throws {
        let bytes = try readFile(logPath)
        let whole = try DiskLog(bytes).length
        if whole < bytes.count, truncate(logPath, off_t(whole)) != 0 {
            throw ScenarioFailure("cannot shorten \(logPath): error \(errno)")
        }
    }

    /// All records.
    func log() throws -> DiskLog { try DiskLog(readFile(logPath)) }

    /// The current length of the log, as a point to return to.
    func now() throws -> Int { try readFile(logPath).count }
}

/// One change or sync.
struct DiskRecord {
    enum Kind: UInt32 {
        case create = 1
        case write, truncate, punch, syncBegin, syncEnd, rename, unlink, makeFolder
        case folderBegin, folderEnd, allBegin, allEnd, link, unknown
    }

    let kind: Kind
    /// The inode, which may be reused for another file once its own is gone.
    let inode: UInt64
    /// The offset of the bytes; for a sync, its number.
    let offset: Int
    let length: Int
    /// The position in the log.
    let payload: Range<Int>
}

struct DiskLog {
    let bytes: [UInt8]
    private(set) var records: [DiskRecord] = []
    /// The bytes up to the end of the last whole record.
    var length: Int { records.last?.payload.upperBound ?? 0 }

    init(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        var place = 0
        while place < bytes.count {
            let head = bytes[place..<min(place + 32, bytes.count)]
            // A kill in the middle of an append leaves the last record short (write(2)). Its change was
            // not synced, so that no promise rests on it.
            guard head.count == 32 else { break }
            let size = Int(Self.number(head, 0, UInt32.self))
            guard size >= 32,
                let kind = DiskRecord.Kind(rawValue: Self.number(head, 4, UInt32.self))
            else { throw ScenarioFailure("the log of the disk is damaged at \(place)") }
            guard place + size <= bytes.count else { break }
            let record = DiskRecord(
                kind: kind, inode: Self.number(head, 8, UInt64.self),
                offset: Int(Self.number(head, 16, Int64.self)),
                length: Int(Self.number(head, 24, Int64.self)),
                payload: place + 32..<place + size)
            guard kind != .unknown else {
                throw ScenarioFailure("\(String(decoding: bytes[record.payload], as: UTF8.self))")
            }
            records.append(record)
            place += size
        }
    }

    /// The number of records when the log had this many bytes.
    func count(before length: Int) -> Int {
        records.firstIndex { $0.payload.upperBound > length } ?? records.count
    }

    /// The path or the two paths of a record.
    func paths(_ record: DiskRecord) -> [String] {
        bytes[record.payload].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func number<Value: FixedWidthInteger>(
        _ head: ArraySlice<UInt8>, _ offset: Int, _ type: Value.Type
    ) -> Value {
        let start = head.startIndex + offset
        guard start + Value.bitWidth / 8 <= head.endIndex else { return 0 }
        return head.withUnsafeBytes {
            Value(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Value.self))
        }
    }
}
