import Glibc
import Posix
import SharedStore
import Store
import URISyntax

/// The file of the objects that are still to be written to the shared store, for the next run.
///
/// Each change appends a line, which the kernel has at once, so that a kill loses none. The file is
/// rewritten when most of its lines are about objects that have left.
final class BacklogFile {
    private let path: String
    private var file: OwnedDescriptor?
    private var length: Int64 = 0
    private var lines = 0

    init(_ path: String) { self.path = path }

    /// Reads what an earlier run has not written; blocks on the disk.
    ///
    /// - Returns: nothing without a file; damaged lines are left out.
    /// - Throws: an error that may be temporary; the file must not be written before it was read.
    func read() throws(SystemError) -> [SharedCandidate] {
        let text: [UInt8]
        do throws(SystemError) {
            text = try readWhole(path, atMost: WriteBacklog.largest)
        } catch {
            guard error.mayHideSoundFile else { return [] }
            throw error
        }
        return WriteBacklog.parse(text).compactMap { waiting in
            guard let key = ObjectKey(hex: waiting.key), let url = try? AbsoluteURL(waiting.url)
            else { return nil }
            return SharedCandidate(
                key: key, generation: waiting.generation, url: url, role: waiting.role,
                isKey: waiting.isKey, setsCookies: waiting.setsCookies, isFilm: waiting.isFilm)
        }
    }

    /// Notes that an object waits; may block on the disk.
    func add(_ candidate: SharedCandidate) throws(SystemError) {
        if file == nil { try begin() }
        if let line = WriteBacklog.line(candidate.waiting) { try append(line) }
    }

    /// Notes that an object waits no more; may block on the disk.
    func remove(_ candidate: SharedCandidate) throws(SystemError) {
        try append(WriteBacklog.line(doneWith: candidate.key.hex, candidate.generation))
    }

    /// True if the file has too many lines for the number of objects that wait.
    func isLong(for waiting: Int) -> Bool { lines > WriteBacklog.mostLines(waiting: waiting) }

    private func begin() throws(SystemError) {
        let made = try openFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC)
        let text = Array(WriteBacklog.firstLine.utf8)
        try Posix.write(text, to: made.number, at: 0)
        file = consume made
        (length, lines) = (Int64(text.count), 0)
    }

    private func append(_ line: String) throws(SystemError) {
        guard let number = file?.number else { return }
        let text = Array(line.utf8)
        try Posix.write(text, to: number, at: length)
        length += Int64(text.count)
        lines += 1
    }

    /// Replaces the file, or removes it if nothing waits; blocks until it is on the disk.
    func write(_ waiting: [SharedCandidate]) throws(SystemError) {
        file = nil
        guard !waiting.isEmpty else {
            unlink(path)
            return
        }
        let texts = waiting.prefix(WriteBacklog.most).compactMap { WriteBacklog.line($0.waiting) }
        let text = Array((WriteBacklog.firstLine + texts.joined()).utf8)
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        try replaceFile(path, with: text, in: folder)
        file = try openFile(path, flags: O_WRONLY)
        (length, lines) = (Int64(text.count), texts.count)
    }
}

extension SharedCandidate {
    fileprivate var waiting: WaitingWrite {
        WaitingWrite(
            key: key.hex, generation: generation, role: role, isKey: isKey,
            setsCookies: setsCookies, isFilm: isFilm, url: url.text)
    }
}
