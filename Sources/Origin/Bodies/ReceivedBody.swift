// The bytes of a response on their way into an object.
//
// Readers are woken and files are written in pieces of 256 KiB that end at multiples of that in the
// file; the first bytes of a response, which players wait for, do not wait for a whole piece. Bytes
// near those that are stored already are compared with them first, see `ExpectedBody`.
import Model
import Posix
import Store

/// The body that a flight receives: which bytes belong to it, and which are not yet in its file.
///
/// It decides nothing about the flight: each call tells what the flight has to do next. Used on the
/// upstream loop.
struct ReceivedBody {
    /// The size of the pieces of a fast body.
    static let pieceLength = 256 << 10

    /// A smaller piece costs more to hand over to another thread than to write.
    private static let leastPutOff = 64 << 10

    /// What follows from bytes that were taken.
    enum Step {
        /// Nothing: all of them were taken.
        case taken
        /// The collected bytes are to be written before the others are taken.
        case write
        /// The transfer has sent all that it was to send.
        case end
        /// The bytes around the end of a hole are those that are stored: `takeHeld` returns them.
        case same
        /// They differ from those that are stored.
        case different
    }

    /// Writes into the object; nil while nothing is being filled.
    private(set) var writer: FillWriter?
    /// The bytes that are not yet in the file.
    private(set) var collected: [UInt8] = []
    /// The bytes that the current piece still lacks; 0 until that is known.
    private var roomInPiece = 0
    private var expected = ExpectedBody()
    /// Bytes around the end of a hole that were found to be the stored ones.
    private var held: [UInt8] = []
    /// The first bytes of a response that differ from the stored ones, while they do not show
    /// whether a page begins with them.
    private var openBeginning: [UInt8] = []

    /// The offset of the next byte; nil while nothing is being filled.
    var position: Int64? {
        // A copy of the writer would retain what it holds, for each piece of a body.
        guard let offset = writer?.offset else { return nil }
        return offset + Int64(collected.count)
    }

    // MARK: Responses

    /// Forgets what the response before has stated; its fill may continue.
    mutating func beginResponse() {
        expected = ExpectedBody()
        openBeginning = []
    }

    /// True while first bytes of the response are kept until more of them arrive.
    var hasOpenBeginning: Bool { !openBeginning.isEmpty }

    /// Keeps the first bytes of a response until more of them show what they are.
    mutating func keepOpen(_ beginning: UnsafeRawBufferPointer) {
        openBeginning = Array(beginning)
    }

    /// Returns the first bytes that were kept, once.
    mutating func takeOpenBeginning() -> [UInt8] {
        defer { openBeginning = [] }
        return openBeginning
    }

    /// Begins to fill, or continues.
    mutating func begin(_ writer: FillWriter, _ expected: ExpectedBody) {
        self.writer = writer
        self.expected = expected
    }

    /// Continues with another writer.
    mutating func replaceWriter(_ writer: FillWriter) { self.writer = writer }

    /// Ends the fill, and returns its writer, which the caller ends.
    mutating func takeWriter() -> FillWriter? {
        defer { writer = nil }
        return writer
    }

    /// Forgets the bytes that are not in the file.
    mutating func drop() {
        collected.removeAll()
        roomInPiece = 0
    }

    // MARK: Bytes

    /// Takes bytes up to the end that the response has stated.
    ///
    /// - Parameters:
    ///   - rest: the bytes; those that were taken are removed.
    ///   - object: the object that is filled.
    ///   - buffer: makes an empty array that can hold a piece.
    /// - Returns: what has to be done before the bytes that are left are taken.
    @inline(__always)
    mutating func take(
        _ rest: inout UnsafeRawBufferPointer, over object: @autoclosure () -> StoredObject?,
        buffer: @autoclosure () -> [UInt8]
    ) -> Step {
        if case .unchecked = expected.ahead { return takeProven(&rest, buffer: buffer()) }
        return takeComparing(&rest, over: object(), buffer: buffer())
    }

    /// Takes bytes that need no comparison with stored ones.
    @inline(__always)
    private mutating func takeProven(
        _ rest: inout UnsafeRawBufferPointer, buffer: @autoclosure () -> [UInt8]
    ) -> Step {
        guard let position else { return .taken }
        let count = expected.proven(of: rest.count, at: position)
        if count == rest.count { return collect(&rest, buffer: buffer()) }
        var proven = UnsafeRawBufferPointer(rebasing: rest[..<count])
        let step = collect(&proven, buffer: buffer())
        rest = UnsafeRawBufferPointer(rebasing: rest[(count - proven.count)...])
        if case .write = step { return .write }
        return .end
    }

    /// Collects bytes until a piece is full.
    @inline(__always)
    mutating func collect(
        _ rest: inout UnsafeRawBufferPointer, buffer: @autoclosure () -> [UInt8]
    ) -> Step {
        guard !rest.isEmpty else { return .taken }
        if roomInPiece == 0 {
            guard let room = writer?.bytesToCut(every: Self.pieceLength) else { return .taken }
            if collected.capacity == 0 { collected = buffer() }
            roomInPiece = room - collected.count
        }
        let count = min(roomInPiece, rest.count)
        collected.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<count]))
        roomInPiece -= count
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        return roomInPiece == 0 || expected.isAwaited ? .write : .taken
    }

    /// Takes bytes up to the next stored ones, and compares those before any reader gets there.
    private mutating func takeComparing(
        _ rest: inout UnsafeRawBufferPointer, over object: StoredObject?,
        buffer: @autoclosure () -> [UInt8]
    ) -> Step {
        guard let object else { return .taken }
        while !rest.isEmpty, let position {
            let step = expected.next(
                rest.count, at: position, stored: object.firstPresent(from: position),
                total: object.total)
            switch step {
            case .skip: return .taken
            case .end: return .end
            case .take(let count):
                var part = UnsafeRawBufferPointer(rebasing: rest[..<count])
                let step = takeProven(&part, buffer: buffer())
                rest = UnsafeRawBufferPointer(rebasing: rest[(count - part.count)...])
                guard case .taken = step else { return step }
            case .hold(let count):
                let meeting = expected.hold(UnsafeRawBufferPointer(rebasing: rest[..<count]))
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                guard let meeting else { continue }
                guard meeting.isSame(in: object) else { return .different }
                held = Array(meeting.held[..<expected.taken(of: meeting)])
                return .same
            }
        }
        return .taken
    }

    /// Returns the bytes that were held back and belong to the body, once.
    mutating func takeHeld() -> [UInt8] {
        defer { held = [] }
        return held
    }

    // MARK: Writing

    /// Starts a new piece with the next bytes.
    ///
    /// - Returns: true if there are bytes to write before.
    mutating func endPiece() -> Bool {
        roomInPiece = 0
        return !collected.isEmpty && writer != nil
    }

    /// True if another thread may as well write the collected bytes: nobody waits for just these,
    /// and they are many, or follow others that it has yet to write.
    var mayBePutOff: Bool {
        guard !expected.isAwaited, let written = writer?.written, let offset = writer?.offset
        else { return false }
        return written < offset || collected.count >= Self.leastPutOff
    }

    /// Has another thread write the collected bytes.
    ///
    /// - Returns: false if it has no room for them; then they are still here.
    mutating func putOff(
        to bodies: BodyWriter, whenFailed: @autoclosure () -> @Sendable () -> Void
    ) -> Bool {
        writer?.backgroundWrite(&collected, to: bodies, whenFailed: whenFailed()) == true
    }

    /// Writes the collected bytes, which stay collected; readers are woken.
    mutating func write() -> SystemError? {
        expected.isAwaited = false
        // In place: a copy of the array would be allocated in every round.
        return collected.withUnsafeBytes { raw in
            do throws(SystemError) {
                try writer?.append(raw)
                return nil
            } catch {
                return error
            }
        }
    }

    /// Gives up the collected bytes, which are in the file.
    mutating func giveBack(_ take: (inout [UInt8]) -> Void) { take(&collected) }

    /// Waits until all bytes that another thread writes are in the file.
    mutating func drain() -> SystemError? {
        do throws(SystemError) {
            try writer?.drain()
            return nil
        } catch {
            return error
        }
    }

    // MARK: Short bodies, whose heads are held until they are there

    /// Collects bytes of a body whose head is held.
    ///
    /// - Returns: true once all are there.
    mutating func hold(_ bytes: UnsafeRawBufferPointer, total: Int64) -> Bool {
        // Not a pooled buffer for large pieces, since many heads may be held at once.
        if collected.capacity == 0 { collected.reserveCapacity(Int(total)) }
        collected.append(contentsOf: bytes)
        return collected.count >= total
    }

    /// The first bytes of a body whose head is held; none for any other body.
    var heldBeginning: ArraySlice<UInt8> {
        writer == nil ? collected.prefix(Self.beginningLength) : []
    }

    /// The number of first bytes that show that almost any media is no page.
    private static let beginningLength = 64

    /// Returns the whole body if it was received before its object is created and can be written
    /// with it.
    func held(_ total: Int64?) -> [UInt8]? {
        guard let total, total == collected.count, total > 0, writer == nil else { return nil }
        return collected
    }

    /// Forgets the collected bytes if they were written with a new object.
    ///
    /// - Returns: the end of the body; nil if none was written.
    mutating func forgetWritten(with object: StoredObject) -> Int64? {
        guard !collected.isEmpty, object.isComplete, object.total == Int64(collected.count) else {
            return nil
        }
        collected = []
        return object.total
    }
}

extension ExpectedBody.Meeting {
    /// True if all held bytes but the first, which is missing there, are those of the object, as
    /// far as these are not damaged.
    fileprivate func isSame(in object: StoredObject) -> Bool {
        _ = object.removeDamaged(in: start..<start + Int64(count))
        return held.withUnsafeBytes { held in
            object.agrees(with: UnsafeRawBufferPointer(rebasing: held[1...]), at: start)
        }
    }
}
