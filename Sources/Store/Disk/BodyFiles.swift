// Bodies that exceed the maximum file size: their bytes are spread over several files.
//
// The file size may be limited for the process (getrlimit(2), RLIMIT_FSIZE), and every file system
// has a limit of its own. A body that reaches such a limit is not stored, but its readers still get
// all of it: the bytes after the limit go to further unnamed files, each of which is closed as soon
// as every reader has passed it.
import Glibc
package import Posix
import Synchronization

/// The mapping from positions of a body to files.
///
/// Positions count from the start of the object's own file, as its header does: the byte at body
/// offset 0 is at position `bodyOffset`.
struct BodyLayout: Sendable, Equatable {
    /// The file and offset of one byte.
    struct Place: Sendable, Equatable {
        /// 0 for the object's own file.
        let part: Int64
        /// Its offset in that file.
        let offset: Int64
        /// The end of the range of positions that this file holds.
        let end: Int64
    }

    /// Positions and file offsets are congruent modulo this, so all files are divided at the same
    /// pieces.
    static let cut: Int64 = 64 << 10

    /// The end of the range of positions that the object's own file holds.
    let firstEnd: Int64
    /// The length of every further part, in bytes.
    let partSize: Int64

    /// Creates a layout; nil if files cannot hold even two pieces.
    ///
    /// - Parameters:
    ///   - firstEnd: the end of the range of positions that the object's own file holds.
    ///   - largestFile: a file length that is known to be possible, in bytes.
    init?(firstEnd: Int64, largestFile: Int64) {
        let size = min(largestFile, Self.largestPart) / Self.cut * Self.cut - Self.cut
        guard size >= Self.cut, firstEnd >= 0 else { return nil }
        self.firstEnd = firstEnd
        partSize = size
    }

    private static let largestPart: Int64 = 1 << 30

    func place(of position: Int64) -> Place {
        guard position >= firstEnd else { return Place(part: 0, offset: position, end: firstEnd) }
        let part = (position - firstEnd) / partSize + 1
        let range = range(of: part)
        let shift = range.lowerBound / Self.cut * Self.cut
        return Place(part: part, offset: position - shift, end: range.upperBound)
    }

    /// The positions that a part holds; `part` must be 1 or more.
    func range(of part: Int64) -> Range<Int64> {
        let start = firstEnd + (part - 1) * partSize
        return start..<start + partSize
    }
}

/// The files of a body, other than the object's own.
struct BodyFiles: Sendable {
    /// The maximum number of files; each occupies a descriptor of the process.
    static let limit = 64
    /// At this many files, the origin is paused until readers have advanced.
    static let crowd = 32

    let layout: BodyLayout
    var parts: [Int64: SharedDescriptor] = [:]

    init(_ layout: BodyLayout) { self.layout = layout }

    /// Punches holes for positions that are no longer needed.
    ///
    /// - Parameters:
    ///   - gone: the positions to free, cut at multiples of `BodyLayout.cut`.
    ///   - left: the positions that still hold bytes.
    ///   - own: the object's own file.
    /// - Returns: files that hold nothing any more; the caller closes them outside any lock.
    mutating func punch(_ gone: Range<Int64>, left: SpanSet, own: CInt) -> [SharedDescriptor] {
        let first = gone.clamped(to: 0..<layout.firstEnd)
        if !first.isEmpty { Self.punch(first, own) }
        var closed: [SharedDescriptor] = []
        for (part, file) in parts {
            let range = layout.range(of: part)
            if range.upperBound <= gone.upperBound, left.holes(in: range) == [range] {
                closed.append(file)
                parts[part] = nil
                continue
            }
            let here = gone.clamped(to: range)
            guard !here.isEmpty else { continue }
            let offset = layout.place(of: here.lowerBound).offset
            Self.punch(offset..<offset + Int64(here.count), file.number)
        }
        return closed
    }

    /// Punches a hole over whole pieces of a file.
    ///
    /// Rounding outwards is safe where a part begins or ends within a piece: its file has nothing
    /// in the rest of that piece. It is necessary because the kernel zeroes the punched bytes of a
    /// partly punched page, which may be on their way into a socket.
    private static func punch(_ offsets: Range<Int64>, _ file: CInt) {
        let start = offsets.lowerBound / BodyLayout.cut * BodyLayout.cut
        let end = (offsets.upperBound + BodyLayout.cut - 1) / BodyLayout.cut * BodyLayout.cut
        punchHole(file, offset: start, length: end - start)
    }
}

/// A contiguous piece of a body in one file; ends at the latest where that file's part ends.
package struct BodyRange: Sendable {
    /// The file, kept open for as long as the stretch is held.
    package let file: SharedDescriptor
    package let offset: Int64
    package let count: Int64
}

extension StoredObject {
    /// Returns the location of present bytes.
    ///
    /// - Parameters:
    ///   - offset: in bytes of the body.
    ///   - count: the number of bytes to read, at least one; the stretch may be shorter.
    /// - Returns: nil if the file was closed because its bytes were freed.
    package func stretch(at offset: Int64, count: Int64) -> BodyRange? {
        let position = bodyOffset + offset
        guard isSpread else { return BodyRange(file: descriptor, offset: position, count: count) }
        return state.withLock { state in
            guard let files = state.files else { return nil }
            let place = files.layout.place(of: position)
            let file = place.part == 0 ? descriptor : files.parts[place.part]
            return file.map {
                BodyRange(
                    file: $0, offset: place.offset, count: min(count, place.end - position))
            }
        }
    }

    /// Reads present bytes of the body (pread(2)); returns fewer only if the rest cannot be read.
    package func readBody(from offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let next = offset + Int64(bytes.count)
            guard let stretch = stretch(at: next, count: Int64(count - bytes.count)) else { break }
            let read = try readBytes(
                from: stretch.file.number, at: stretch.offset, count: Int(stretch.count))
            if bytes.isEmpty { bytes = read } else { bytes += read }
            guard read.count == stretch.count else { break }
        }
        return bytes
    }

    /// True while the body occupies so many files that it should not grow until readers have
    /// advanced.
    package var hasManyFiles: Bool {
        isSpread && state.withLock { ($0.files?.parts.count ?? 0) >= BodyFiles.crowd }
    }

    /// Writes bytes to the file or files that hold their positions, and spreads the body over
    /// further files when the object's own file cannot grow; `position` counts from the start of
    /// the object's own file.
    func writeSpread(
        _ bytes: UnsafeRawBufferPointer, at position: Int64
    ) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let start = position + Int64(done)
            let (file, offset, end) = try fileToWrite(at: start)
            let rest = UnsafeRawBufferPointer(
                rebasing: bytes[done..<min(bytes.count, done + Int(clamping: end - start))])
            do throws(SystemError) {
                done += try writeOnce(rest, to: file.number, at: offset)
            } catch {
                guard error.code == EFBIG, !isSpread else { throw error }
                try spread(from: start, because: error)
            }
        }
    }

    private func fileToWrite(
        at position: Int64
    ) throws(SystemError) -> (file: SharedDescriptor, offset: Int64, end: Int64) {
        typealias Known = (place: BodyLayout.Place, file: SharedDescriptor?, isCrowded: Bool)
        let (place, known, isCrowded) = state.withLock { state -> Known in
            guard let files = state.files else {
                return (BodyLayout.Place(part: 0, offset: position, end: .max), nil, false)
            }
            let place = files.layout.place(of: position)
            return (place, files.parts[place.part], files.parts.count >= BodyFiles.limit)
        }
        if place.part == 0 { return (descriptor, place.offset, place.end) }
        if let known { return (known, place.offset, place.end) }
        guard !isCrowded, let room = channel.room else {
            throw SystemError("open", code: EMFILE)
        }
        let made = try room.openWithoutName(for: generation)
        let file = state.withLock { state in
            let file = state.files?.parts[place.part] ?? made
            state.files?.parts[place.part] = file
            return file
        }
        return (file, place.offset, place.end)
    }

    /// Continues the body in further files from a position that the object's own file cannot hold,
    /// or throws `error` if that is impossible; a named object loses its name.
    private func spread(from position: Int64, because error: SystemError) throws(SystemError) {
        let limit = fileSizeLimit() ?? .max
        let largest = min(position, limit)
        func layout(_ state: borrowing ObjectState) -> BodyLayout? {
            let present = state.spans.isEmpty ? 0 : bodyOffset + state.spans.end
            // Present bytes are not moved, so none of them may lie after `position`.
            guard present <= position else { return nil }
            return BodyLayout(firstEnd: max(present, largest), largestFile: largest)
        }
        guard state.withLock({ layout($0) }) != nil else { throw error }
        if isStorable {
            guard let room = channel.room, room.forgetName(of: self) else { throw error }
        }
        try state.withLock { state throws(SystemError) in
            guard state.files == nil else { return }
            guard let layout = layout(state) else { throw error }
            state.files = BodyFiles(layout)
            spreads.store(true, ordering: .releasing)
        }
    }

    /// True once the body lies in several files.
    package var isSpread: Bool { spreads.load(ordering: .acquiring) }
}
