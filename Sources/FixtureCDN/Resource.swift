// A resource of the sample CDN: content, type and validators.
import Glibc

/// Bytes that can be read at any offset.
enum Content: Sendable {
    case memory([UInt8])
    case file(path: String, length: Int)
    case synthetic(name: String, length: Int)

    var length: Int {
        switch self {
        case .memory(let bytes): bytes.count
        case .file(_, let length), .synthetic(_, let length): length
        }
    }
}

/// A content with its representation metadata.
struct Resource: Sendable {
    var content: Content
    var contentType: String
    /// With quotes; empty: none.
    var entityTag: String
    var lastModified = Resource.epoch
    var extraFields: [(name: String, value: String)] = []

    /// The modification date of every resource: restarts and checkouts must not change validators.
    static let epoch = "Thu, 01 Jan 2026 00:00:00 GMT"

    /// A resource held in memory, tagged by its content.
    init(_ bytes: [UInt8], contentType: String) {
        content = .memory(bytes)
        self.contentType = contentType
        entityTag = "\"\(Digest.text(Digest.of(bytes)))\""
    }

    /// `/bytes/<name>/<size>` or `/bytes/<size>/<name>`; nil for any other path.
    init?(syntheticPath path: String) {
        let parts = path.split(separator: "/")
        guard parts.count >= 3, parts[0] == "bytes" else { return nil }
        let name: String
        let length: Int
        if let size = Int(parts[parts.count - 1]) {
            name = parts[1..<(parts.count - 1)].joined(separator: "/")
            length = size
        } else if let size = Int(parts[1]) {
            name = parts[2...].joined(separator: "/")
            length = size
        } else {
            return nil
        }
        guard length >= 0 else { return nil }
        content = .synthetic(name: name, length: length)
        contentType = MediaType.of(name)
        entityTag = "\"\(Digest.text(Digest.of(Array("\(name)/\(length)".utf8))))\""
    }

    /// A file of the served folder, tagged by a hash of its content; nil if it does not exist.
    init?(file path: String, type: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        let length = Int(status.st_size)
        guard let hash = FileHashes.shared.hash(descriptor, path, status) else { return nil }
        content = .file(path: path, length: length)
        contentType = type
        entityTag = "\"\(Digest.text(hash))\""
    }
}

/// Reads one content in order, holding the descriptor of a file open meanwhile.
final class ContentReader {
    private let content: Content
    private var descriptor: Int32 = -1

    init(_ content: Content) {
        self.content = content
        if case .file(let path, _) = content { descriptor = open(path, O_RDONLY | O_CLOEXEC) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The bytes at `range`; fewer if the file has become shorter.
    func read(_ range: Range<Int>) -> ArraySlice<UInt8> {
        switch content {
        case .memory(let bytes): return bytes[range]
        case .synthetic(let name, _): return Synthetic.bytes(name, range)[...]
        case .file:
            var buffer = [UInt8](repeating: 0, count: range.count)
            let count = buffer.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress, $0.count, off_t(range.lowerBound))
            }
            return buffer[..<max(count, 0)]
        }
    }
}
