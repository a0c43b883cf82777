import Glibc

/// Reads files that are named on the command line, up to a limit.
package enum InputFile {
    /// Why a file cannot be read, as text.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    /// Reads a file, or standard input for `-`.
    ///
    /// - Parameters:
    ///   - path: the path; a device or a folder is rejected.
    ///   - limit: the most bytes that are read.
    ///   - isPipeAllowed: true if a named pipe is read too, after waiting for a writer. A daemon
    ///     must not wait, and reads its files again on a reload.
    /// - Returns: all bytes of the file.
    /// - Throws: `Fault`, which names the limit if there are more bytes.
    package static func read(
        _ path: String, atMost limit: Int, isPipeAllowed: Bool = false
    ) throws(Fault) -> [UInt8] {
        let flags = O_RDONLY | O_CLOEXEC | (isPipeAllowed ? 0 : O_NONBLOCK)
        let file = path == "-" ? STDIN_FILENO : open(path, flags)
        guard file >= 0 else { throw failure(path) }
        defer { if path != "-" { close(file) } }
        var found = stat()
        guard fstat(file, &found) == 0 else { throw failure(path) }
        if path != "-" { try check(found, path, isPipeAllowed: isPipeAllowed) }
        let isFile = found.st_mode & S_IFMT == S_IFREG
        if isFile, Int(found.st_size) > limit { throw tooLong(path, limit) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure(path) }
            guard count > 0 else { return bytes }
            guard bytes.count + count <= limit else { throw tooLong(path, limit) }
            bytes += buffer[..<count]
        }
    }

    /// Returns a text without its byte order mark, which editors on Windows write.
    package static func withoutMark(_ text: [UInt8]) -> [UInt8] {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        return text.starts(with: mark) ? Array(text.dropFirst(mark.count)) : text
    }

    /// Checks that a path that another library will read is a file, and no longer than the limit.
    package static func check(_ path: String, atMost limit: Int) throws(Fault) {
        var found = stat()
        guard stat(path, &found) == 0, access(path, R_OK) == 0 else { throw failure(path) }
        try check(found, path, isPipeAllowed: false)
        if Int(found.st_size) > limit { throw tooLong(path, limit) }
    }

    private static func check(
        _ found: stat, _ path: String, isPipeAllowed: Bool
    ) throws(Fault) {
        switch found.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFIFO:
            if !isPipeAllowed { throw Fault(description: "\(path) is a pipe, not a file") }
        case S_IFDIR: throw Fault(description: "\(path) is a folder, not a file")
        default: throw Fault(description: "\(path) is a device, not a file")
        }
    }

    private static func failure(_ path: String) -> Fault {
        Fault(description: "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }

    private static func tooLong(_ path: String, _ limit: Int) -> Fault {
        Fault(
            description:
                "\(path) is longer than \(OutputFormat.size(Int64(limit))), the limit"
        )
    }
}
