// hls.js, for browsers that do not play HLS themselves: a separate file that is not embedded in the
// daemon.
import Glibc
import HTTP
import HTTPServer
import Posix
import Reactor

/// The location of hls.js.
package struct ConsolePlayer: Sendable {
    static let name = "hls.mjs"
    /// The largest file that is served, in bytes.
    private static let longest: Int64 = 8 << 20

    private let paths: [String]

    /// - Parameter path: the file; nil to search the usual places.
    package init(path: String?) {
        paths = path.map { [$0] } ?? Self.usualPlaces
    }

    /// Places below the prefix of an installation, and where `make setup` puts it for a build.
    private static var usualPlaces: [String] {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { return [] }
        let program = String(decoding: buffer[..<count], as: UTF8.self)
        let folder = program.split(separator: "/").dropLast()
        let places = [
            (1, "share/sluice"), (1, "players"), (2, "players"),
        ]
        return places.map { up, place in
            "/" + (folder.dropLast(up) + [place[...], name[...]]).joined(separator: "/")
        }
    }

    func answer(_ request: RequestHead, _ fields: Fields) -> (ResponseHead, ResponseBody) {
        for path in paths {
            if let found = file(path) {
                var fields = fields
                let tag =
                    "\"\(String(found.length, radix: 16))-\(String(found.changed, radix: 16))\""
                fields.append(.etag, tag)
                if ConsoleFiles.names(tag, request) {
                    return (ResponseHead(status: .notModified, fields: fields), .none)
                }
                let source = FileSource(found.file, length: found.length)
                return (
                    ResponseHead(status: .ok, fields: fields),
                    .source(source, length: found.length)
                )
            }
        }
        var fields = fields
        fields.set(.contentType, "text/plain; charset=utf-8")
        fields.set(.cacheControl, "no-store")
        let text = """
            this daemon has no hls.js; --console-player FILE names an ES module of it, and make setup \
            fetches one

            """
        return (ResponseHead(status: .notFound, fields: fields), .bytes(Array(text.utf8)))
    }

    /// Opens a regular file of an accepted length.
    private func file(_ path: String) -> (file: SharedDescriptor, length: Int64, changed: Int64)? {
        guard let opened = try? openFile(path, flags: O_RDONLY | O_NONBLOCK) else { return nil }
        var status = stat()
        guard fstat(opened.number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        let length = Int64(status.st_size)
        guard length > 0, length <= Self.longest else { return nil }
        let changed = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
        return (SharedDescriptor(opened), length, changed)
    }
}

/// The body of a file; confined to its loop.
private final class FileSource: BodySource {
    private let file: SharedDescriptor
    private let length: Int64
    private var offset: Int64 = 0
    var wake: ((EventLoop) -> Void)?

    init(_ file: SharedDescriptor, length: Int64) {
        self.file = file
        self.length = length
    }

    func next(limit: Int) -> BodyStep {
        guard offset < length else { return .end }
        return .file(
            descriptor: file.number, offset: offset,
            count: min(limit, Int(clamping: length - offset)))
    }

    func advance(by count: Int) { offset += Int64(count) }

    func cancel() { wake = nil }
}
