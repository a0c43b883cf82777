// Body sources of the tests.
import Glibc
import HTTPServer
import Posix
import Reactor

/// Yields pieces, with a wait before each if `pause` is given, then ends or fails.
///
/// `mayGoOn` receives the number of remaining pieces; the wait is repeated until it returns true.
final class PieceSource: BodySource {
    var wake: ((EventLoop) -> Void)? {
        didSet { if wake != nil { record?.note("wake set") } }
    }
    private var pieces: [[UInt8]]
    private let pause: Interval?
    private let breaks: Bool
    private let loop: EventLoop
    private let record: Record?
    private let mayGoOn: (Int) -> Bool
    private var isReady: Bool

    init(
        _ pieces: [[UInt8]], pause: Interval? = nil, breaks: Bool = false, on loop: EventLoop,
        record: Record? = nil, mayGoOn: @escaping (Int) -> Bool = { _ in true }
    ) {
        self.mayGoOn = mayGoOn
        self.pieces = pieces
        self.pause = pause
        self.breaks = breaks
        self.loop = loop
        self.record = record
        isReady = pause == nil
    }

    func next(limit: Int) -> BodyStep {
        guard let first = pieces.first else { return breaks ? .broken : .end }
        guard isReady else {
            loop.schedule(after: pause ?? .zero) { loop in
                self.isReady = self.mayGoOn(self.pieces.count)
                let wake = self.wake
                self.wake = nil
                wake?(loop)
            }
            return .wait
        }
        return .bytes(first.prefix(limit))
    }

    func advance(by count: Int) {
        pieces[0].removeFirst(count)
        if pieces[0].isEmpty {
            pieces.removeFirst()
            isReady = pause == nil
        }
    }

    func cancel() { record?.note("source cancelled") }
}

/// Waits for ever.
final class StalledSource: BodySource {
    var wake: ((EventLoop) -> Void)?
    private let record: Record

    init(_ record: Record) { self.record = record }

    func next(limit: Int) -> BodyStep { .wait }
    func advance(by count: Int) {}
    func cancel() { record.note("source cancelled") }
}

/// Never ends.
final class EndlessSource: BodySource {
    var wake: ((EventLoop) -> Void)?
    private let record: Record
    private let block = [UInt8](repeating: 0x2E, count: 1 << 16)

    init(_ record: Record) { self.record = record }

    func next(limit: Int) -> BodyStep { .bytes(block.prefix(limit)) }
    func advance(by count: Int) {}
    func cancel() { record.note("source cancelled") }
}

/// Reads a complete file, or claims to be longer than it is.
final class FileSource: BodySource {
    var wake: ((EventLoop) -> Void)?
    private let file: SharedDescriptor
    private var offset: Int64
    private let end: Int64

    init(_ file: SharedDescriptor, _ range: Range<Int64>) {
        self.file = file
        offset = range.lowerBound
        end = range.upperBound
    }

    func next(limit: Int) -> BodyStep {
        if offset == end { return .end }
        let count = Int(min(Int64(limit), end - offset))
        return .file(descriptor: file.number, offset: offset, count: count)
    }

    func advance(by count: Int) { offset += Int64(count) }
    func cancel() {}
}

/// An unnamed file with these bytes.
func temporaryFile(_ bytes: [UInt8]) throws -> SharedDescriptor {
    let file = SharedDescriptor(try openUnnamedFile(in: "/tmp"))
    try bytes.withUnsafeBytes { try writeAll($0, to: file.number, at: 0) }
    return file
}

/// Waits before each byte, and wakes as soon as it is asked to.
final class HastySource: BodySource {
    var wake: ((EventLoop) -> Void)? {
        didSet {
            guard let wake else { return }
            isReady = true
            self.wake = nil
            wake(loop)
        }
    }
    private var left: Int
    private var isReady = false
    private let loop: EventLoop

    init(waits: Int, on loop: EventLoop) {
        left = waits
        self.loop = loop
    }

    func next(limit: Int) -> BodyStep {
        if left == 0 { return .end }
        return isReady ? .bytes([0x2A]) : .wait
    }

    func advance(by count: Int) {
        left -= count
        isReady = false
    }

    func cancel() {}
}
