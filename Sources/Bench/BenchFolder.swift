import Glibc
import Posix

/// A folder of a bench's own, removed with everything in it when the bench is over.
final class BenchFolder {
    let path: String
    /// Whether a file system of its own lies on it.
    var isMounted = false

    init() throws {
        // nginx, Traffic Server and Squid, started by root, change to users of their own, who may
        // not be able to enter what TMPDIR names.
        path = try makeTemporaryFolder("sluice-bench", in: "/tmp")
    }

    deinit {
        if isMounted { umount2(path, CInt(MNT_DETACH)) }
        Self.remove(path)
    }

    /// Removes a folder and all that is in it; blocks.
    static func remove(_ path: String) {
        _ = try? ChildProgram(["rm", "-rf", path]).waitForEnd()
    }

    /// This program.
    static func ownProgram() throws -> String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count)
        guard count > 0 else { throw BenchError("cannot find this program") }
        return String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Where this program stands, and sluice and sample-cdn beside it.
    static func ownFolder() throws -> String {
        let text = try ownProgram()
        guard let slash = text.lastIndex(of: "/") else {
            throw BenchError("cannot find the programs beside this one")
        }
        return String(text[..<slash])
    }
}
