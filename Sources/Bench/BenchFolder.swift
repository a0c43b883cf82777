/// A folder of a bench's own, removed with everything in it when the bench is over.
import Glibc
import Posix

final class BenchFolder {
    let path: String

    init() throws {
        var name = Array("/tmp/sluice-bench-XXXXXX".utf8CString)
        guard mkdtemp(&name) != nil else { throw SystemError("mkdtemp", code: errno) }
        path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        var pid = pid_t()
        var words: [UnsafeMutablePointer<CChar>?] = ["rm", "-rf", path]
            .map { (word: String) in strdup(word) }
        words.append(nil)
        defer { for word in words { free(word) } }
        if posix_spawnp(&pid, "rm", nil, nil, &words, environ) == 0 { waitpid(pid, nil, 0) }
    }

    /// Where this program stands, and sluice and sample-cdn beside it.
    static func ownFolder() throws -> String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count)
        let text = String(
            decoding: path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard let slash = text.lastIndex(of: "/") else {
            throw BenchError("cannot find the programs beside this one")
        }
        return String(text[..<slash])
    }
}
