import Glibc
import Posix
import Testing

@Suite struct TemporaryFolderTests {
    @Test func `each temporary folder is new, empty and accessible to its user only`() throws {
        let folders = try (0..<3).map { _ in try makeTemporaryFolder("posix-tests") }
        defer { for folder in folders { removeTree(folder) } }
        #expect(Set(folders).count == 3)
        for folder in folders {
            var facts = stat()
            #expect(stat(folder, &facts) == 0 && facts.st_mode & 0o777 == 0o700)
            #expect(try listFolder(folder).isEmpty)
        }
    }

    @Test func `a tree is removed with its content, without following links`() throws {
        let (tree, other) = (
            try makeTemporaryFolder("posix-tests"), try makeTemporaryFolder("posix-tests")
        )
        defer { removeTree(other) }
        try makeFolder("\(tree)/a/b")
        for path in ["\(tree)/a/b/file", "\(other)/kept"] {
            _ = try openFile(path, flags: O_WRONLY | O_CREAT)
        }
        #expect(symlink(other, "\(tree)/a/link") == 0)
        removeTree(tree)
        #expect(access(tree, F_OK) != 0)
        #expect(access("\(other)/kept", F_OK) == 0)
    }
}
