import Glibc
import Posix
import Testing

/// File operations on descriptors.
struct FileTests {
    @Test func `bytes written at an offset are read there`() throws {
        let file = try openUnnamedFile(in: "/tmp")
        let bytes: [UInt8] = [1, 2, 3, 4, 5]
        try bytes.withUnsafeBytes { try writeAll($0, to: file.number, at: 10) }
        #expect(try fileSize(file.number) == 15)
        var found = [UInt8](repeating: 9, count: 20)
        let count = try found.withUnsafeMutableBytes {
            try readAll(into: $0, from: file.number, at: 8)
        }
        #expect(count == 7)
        #expect(found.prefix(7) == [0, 0, 1, 2, 3, 4, 5])
    }

    @Test func `a folder is created with its parents and listed`() throws {
        let base = "/tmp/posix-tests-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try makeFolder("\(base)/a/b")
        try makeFolder("\(base)/a/b")
        _ = try openFile("\(base)/a/file", flags: O_CREAT | O_WRONLY)
        let names = try listFolder("\(base)/a").sorted { $0.name < $1.name }
        #expect(names.map(\.name) == ["b", "file"])
        #expect(names.map(\.isFolder) == [true, false])
        try renameFile("\(base)/a/file", to: "\(base)/a/other")
        try removeFile("\(base)/a/other")
        try removeFile("\(base)/a/other")
        for path in ["/a/b", "/a", ""] { _ = rmdir(base + path) }
    }

    @Test func `a replacement that fails leaves no part of the new file`() throws {
        let base = "/tmp/posix-tests-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try makeFolder("\(base)/a")
        // A folder is not replaced by a file.
        #expect(throws: SystemError.self) {
            try replaceFile("\(base)/a", with: [1, 2, 3], in: base)
        }
        #expect(try listFolder(base).map(\.name) == ["a"])
        for path in ["/a", ""] { _ = rmdir(base + path) }
    }

    @Test func `a lock is denied to a second descriptor until the first is closed`() throws {
        let path = "/tmp/posix-lock-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        do {
            let first = try openFile(path, flags: O_CREAT | O_RDWR)
            let second = try openFile(path, flags: O_RDWR)
            #expect(try lockExclusively(first.number))
            #expect(try !lockExclusively(second.number))
            _ = consume first
            #expect(try lockExclusively(second.number))
        }
        try removeFile(path)
    }

    /// File systems without renameat2(2), such as NFS, may refuse any of the renames.
    @Test(arguments: 0...3)
    func `an exchange by renames that is refused one does all or nothing`(
        refused: Int
    ) throws {
        let base = "/tmp/posix-exchange-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let (one, other) = ("\(base)/one", "\(base)/other")
        try makeFolder("\(one)/first")
        try makeFolder("\(other)/second")
        var count = 0
        var failure: SystemError?
        var place: String?
        do throws(SystemError) {
            place = try exchangeByRenames(one, other) { (from, to) throws(SystemError) in
                count += 1
                guard count != refused else { throw SystemError("rename", code: EIO) }
                try renameFile(from, to: to)
            }
        } catch {
            failure = error
        }
        let isDone = refused == 0 || refused == 3
        #expect((failure == nil) == isDone)
        #expect(place == [other, nil, nil, "\(other).old"][refused])
        #expect(try listFolder(one).map(\.name) == [isDone ? "second" : "first"])
        #expect(try listFolder(place ?? other).map(\.name) == [isDone ? "first" : "second"])
        for path in [one, other, "\(other).old"] {
            for name in ["first", "second"] { _ = rmdir("\(path)/\(name)") }
            _ = rmdir(path)
        }
        _ = rmdir(base)
    }

    @Test func `an error names call, file and reason`() {
        let error = #expect(throws: SystemError.self) {
            _ = try openFile("/nowhere/file", flags: O_RDONLY)
        }
        #expect(error?.code == ENOENT)
        #expect(error?.description == "open /nowhere/file: No such file or directory")
        #expect(error?.isStorageExhausted == false)
        #expect(SystemError("write", code: ENOSPC).isStorageExhausted)
    }
}
