// What the test knows of bodies, and of the fills and readers of their objects.
import Glibc
import Posix
import Synchronization

@testable import Store

/// A body, which has one content for as long as the test runs.
final class KnownBody: CustomStringConvertible {
    let number: Int
    let name: String
    let total: Int64
    /// What was written and shown to readers.
    var shown = SpanSet()
    /// True once no lookup may find it.
    var isGone = false

    init(number: Int, name: String, total: Int64) {
        self.number = number
        self.name = name
        self.total = total
    }

    var description: String { "\(name)\(number)" }

    /// The head of its objects, by which they are recognised after a restart.
    var head: [UInt8] { Array("\(number) ".utf8) }

    static func number(inHead head: [UInt8]) -> Int? {
        Int(String(decoding: head.prefix { $0 != 0x20 }, as: UTF8.self))
    }

    func withBytes(_ range: Range<Int64>, _ use: (UnsafeRawBufferPointer) throws -> Void) throws {
        let start = KnownBytes.start(of: number) + Int(range.lowerBound)
        try KnownBytes.all.withUnsafeBytes { all in
            try use(UnsafeRawBufferPointer(rebasing: all[start..<start + range.count]))
        }
    }

    /// True if these are the bytes of a range, and all of them.
    func matches(_ bytes: [UInt8], _ range: Range<Int64>) throws -> Bool {
        guard bytes.count == range.count else { return false }
        var isEqual = true
        try withBytes(range) { known in
            bytes.withUnsafeBytes { found in
                guard let one = known.baseAddress, let other = found.baseAddress else { return }
                isEqual = memcmp(one, other, known.count) == 0
            }
        }
        return isEqual
    }
}

/// A running fill.
struct KnownFill {
    let id: FillID
    /// Where it ends.
    let limit: Int64
    var watermark: Int64
    /// The piece that is in the file, and not shown to readers yet.
    var pending: Range<Int64>?
}

/// A reader, which is what `Reader` is in the daemon.
final class KnownReader {
    enum Stage {
        case idle
        /// It was told that these bytes are present, and sends them later.
        case offered(Range<Int64>)
        /// It found a hole, when so many fills had ended.
        case hole(Hole, ends: Int)
        case waiting(ReadingTests.Calls, id: UInt64, ends: Int)
    }

    var offset: Int64
    let end: Int64
    /// The offset that it has reported; bytes before it may be punched.
    var reported: Int64
    /// False for a reader that was told that everything is stored.
    var isRegistered: Bool
    var stage = Stage.idle

    init(from offset: Int64, to end: Int64, isRegistered: Bool) {
        self.offset = offset
        self.end = end
        self.isRegistered = isRegistered
        reported = offset
    }

    var isIdle: Bool { if case .idle = stage { true } else { false } }
    var hasOffer: Bool { if case .offered = stage { true } else { false } }
    var foundHole: Bool { if case .hole = stage { true } else { false } }
    var isWaiting: Bool { if case .waiting = stage { true } else { false } }
}

/// An object that the test holds, with its fills and readers.
final class KnownObject: CustomStringConvertible {
    let body: KnownBody
    let object: StoredObject
    var fills: [KnownFill] = []
    var readers: [KnownReader] = []
    /// How many fills have ended; a discard counts as one.
    var ends = 0

    init(_ body: KnownBody, _ object: StoredObject) {
        self.body = body
        self.object = object
    }

    var description: String {
        let place = object.state.withLock { $0.place }
        return "\(body) (\(place), \(body.total) bytes)"
    }

    var isProven: Bool { object.state.withLock { $0.extents.isProven } }

    /// The bytes charged for it if it has no name; otherwise 0.
    var windowBytes: Int64 {
        object.state.withLock { $0.place == .unnamed ? $0.charge : 0 }
    }

    /// True unless all of it is certainly stored, so that nothing of it is ever punched.
    var mustRegister: Bool { !object.isComplete || !object.isStorable || !isProven }

    /// The position of the reader furthest behind; nil without one.
    var least: Int64? { readers.filter(\.isRegistered).map(\.reported).min() }
}

/// Returns the open files of this process in a folder, deleted ones included.
func openFiles(under folder: String) throws -> [String] {
    try listFolder("/proc/self/fd").compactMap { entry in
        var buffer = [CChar](repeating: 0, count: 512)
        let count = readlink("/proc/self/fd/\(entry.name)", &buffer, 512)
        guard count > 0 else { return nil }
        let path = String(
            decoding: buffer[..<count].map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
        return path.hasPrefix(folder) ? path : nil
    }
}
