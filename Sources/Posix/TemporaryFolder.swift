import Glibc

/// Makes an empty folder for this process that other users cannot enter.
///
/// - Parameters:
///   - prefix: the start of its name; six characters follow (mkdtemp(3)).
///   - parent: the folder that it is made in; nil stands for `TMPDIR` or else `/tmp`.
/// - Returns: its path.
/// - Throws: if the folder cannot be made; names its parent.
package func makeTemporaryFolder(
    _ prefix: String, in parent: String? = nil
) throws(SystemError) -> String {
    let parent = parent ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var path = Array("\(parent)/\(prefix)-XXXXXX".utf8CString)
    guard mkdtemp(&path) != nil else { throw SystemError("mkdtemp", code: errno, subject: parent) }
    return String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Removes a folder and everything in it, as far as permissions allow; follows no links.
///
/// Blocks for as long as the file system takes.
package func removeTree(_ path: String) {
    for entry in (try? listFolder(path)) ?? [] {
        let inner = "\(path)/\(entry.name)"
        if entry.isFolder { removeTree(inner) } else { unlink(inner) }
    }
    rmdir(path)
}
