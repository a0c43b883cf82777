// Files of the scenarios: the committed fixtures, and temporary folders.
import Glibc

/// The files under `Fixtures/`.
package enum Fixture {
    /// The folder `Fixtures`, found from the place of this source file.
    package static var folder: String {
        repository + "/Fixtures"
    }

    /// The folder with the package manifest.
    package static var repository: String {
        let source = realPath(#filePath) ?? #filePath
        // .../Tests/ScenarioSupport/Files.swift
        return source.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }
    }

    /// The full path of a fixture, `media/ts/master.m3u8` for example.
    package static func path(_ name: String) -> String { folder + "/" + name }

    /// Its bytes; throws when it is not there.
    package static func bytes(_ name: String) throws -> [UInt8] { try readFile(path(name)) }

    /// Its text.
    package static func text(_ name: String) throws -> String {
        String(decoding: try bytes(name), as: UTF8.self)
    }
}

/// All bytes of a file, kernel files included.
package func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
        throw ScenarioFailure("cannot open \(path): \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
        let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return bytes }
        bytes += buffer[..<count]
    }
}

/// Writes a file, replacing what was there.
package func writeFile(_ path: String, _ bytes: some Sequence<UInt8>) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
        throw ScenarioFailure("cannot write \(path): \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { throw ScenarioFailure("cannot write \(path)") }
        rest = rest.dropFirst(count)
    }
}

/// The names in a folder, without `.` and `..`, sorted; empty when it cannot be read.
package func listFolder(_ path: String) -> [String] {
    guard let stream = opendir(path) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
}

/// An empty folder that is removed with its content together with this value.
package final class TemporaryFolder: Sendable {
    package let path: String

    /// Makes the folder in `$TMPDIR` or `/tmp`.
    package init() throws {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array((base + "/sluice-test-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ScenarioFailure("cannot make a folder in \(base)")
        }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    /// The full path of `name` in it.
    package func file(_ name: String) -> String { path + "/" + name }

    /// Makes a folder in it and returns its full path.
    package func makeFolder(_ name: String) -> String {
        mkdir(file(name), 0o755)
        return file(name)
    }

    private static func remove(_ path: String) {
        if unlink(path) == 0 { return }
        for name in listFolder(path) { remove(path + "/" + name) }
        rmdir(path)
    }
}

func realPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
}

/// Whether both arrays hold the same bytes; `==` takes a generic call for each of them when it is not
/// optimised.
package func isSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one == other
}
