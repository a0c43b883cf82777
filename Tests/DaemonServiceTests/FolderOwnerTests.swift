import Glibc
import Posix
import Testing

@testable import DaemonService

/// Root and the stores of other users.
struct FolderOwnerTests {
    @Test(
        .enabled(if: geteuid() == 0, "only root can be kept out"),
        arguments: [0, EOPNOTSUPP, EISDIR, EINVAL])
    func `root is kept out also where files cannot be without a name`(code: CInt) throws {
        let folder = try makeTemporaryFolder("folder-owner-tests")
        defer { removeTree(folder) }
        let objects = folder + "/objects"
        try #require(mkdir(objects, 0o700) == 0)
        #expect(owner(of: folder, code) == nil)
        try #require(chown(objects, 1_234, 1_234) == 0)
        #expect(owner(of: folder, code) == "#1234")
        #expect(try listFolder(objects).isEmpty)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can be kept out"))
    func `root is kept out of another user's folder that is still empty`() throws {
        let folder = try makeTemporaryFolder("folder-owner-tests")
        defer { removeTree(folder) }
        #expect(owner(of: folder + "/none", 0) == nil)
        #expect(owner(of: folder, 0) == nil)
        // The first user after root, which every Linux system names.
        let user = FolderOwner(1).argument
        try #require(!user.hasPrefix("#"))
        try #require(chown(folder, 1, 1) == 0)
        #expect(owner(of: folder, 0) == user)
        #expect(try listFolder(folder).isEmpty)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can be kept out"))
    func `root starts in an empty folder whose owner has no name`() throws {
        let folder = try makeTemporaryFolder("folder-owner-tests")
        defer { removeTree(folder) }
        try #require(chown(folder, 1_234, 1_234) == 0)
        #expect(owner(of: folder, 0) == nil)
        // What is in a store is that user's.
        try #require(mkdir(folder + "/objects", 0o700) == 0)
        try #require(chown(folder + "/objects", 1_234, 1_234) == 0)
        #expect(owner(of: folder, 0) == "#1234")
    }

    @Test(arguments: [(nil, false), ("nobody", false), ("sluice", true)] as [(String?, Bool)])
    func `only a user that has a name may run a daemon`(name: String?, mayRun: Bool) {
        #expect(FolderOwner.mayRunDaemon(name) == mayRun)
    }

    @Test func `whoever may not use a folder is told how to get access`() throws {
        let folder = try makeTemporaryFolder("folder-owner-tests")
        defer { removeTree(folder) }
        let own = FolderOwner.advice(withoutAccessTo: folder)
        let change = "give \(folder) to this user with sudo chown -R "
        #expect(own.hasPrefix(change) && own.hasSuffix(" \(folder)"), "\(own)")
        #expect(FolderOwner.advice(withoutAccessTo: folder + "/none").contains("--cache-dir"))
        guard geteuid() == 0 else { return }
        try #require(chown(folder, 1_234, 1_234) == 0)
        let others = FolderOwner.advice(withoutAccessTo: folder)
        #expect(others.contains("chown -R root"), "\(others)")
        #expect(others.contains("sudo -u #1234"), "\(others)")
    }

    @Test func `whoever may not write to a database is told whose it is`() throws {
        let folder = try makeTemporaryFolder("folder-owner-tests")
        defer { removeTree(folder) }
        let path = folder + "/state.sqlite"
        _ = try openFile(path, flags: O_RDWR | O_CREAT)
        try #require(mkdir(folder + "/objects", 0o700) == 0)
        #expect(FolderOwner.advice(aboutFilesIn: folder, mayWrite: { _ in true }) == nil)
        #expect(FolderOwner.advice(aboutFilesIn: folder + "/none") == nil)
        let own = FolderOwner.advice(aboutFilesIn: folder, mayWrite: { _ in false })
        #expect(own?.contains("chmod u+rw \(path)") == true, "\(own ?? "")")
        guard geteuid() == 0 else { return }
        try #require(chown(path, 1_234, 1_234) == 0)
        let others = FolderOwner.advice(aboutFilesIn: folder, mayWrite: { _ in false })
        #expect(others?.hasPrefix("\(path) belongs to the user 1234; ") == true, "\(others ?? "")")
        #expect(others?.hasSuffix("chown -R root \(folder)") == true, "\(others ?? "")")
    }

    @Test func `root is not told to take the folder of a user that may run a daemon`() {
        // The first user after root, which every Linux system names.
        #expect(!FolderOwner(1).refusal(of: "/c").contains("chown"))
        #expect(FolderOwner(1_234).refusal(of: "/c").hasSuffix("chown -R root"))
    }

    /// Returns the owner whom root is kept from; an unnamed file is refused with `code`, if it is
    /// not 0.
    private func owner(of folder: String, _ code: CInt) -> String? {
        let found = FolderOwner(keepingRootOutOf: folder) { (objects) throws(SystemError) in
            guard code == 0 else { throw SystemError("open", code: code) }
            return try openUnnamedFile(in: objects)
        }
        return found?.argument
    }
}
