import ArgumentParser
import Glibc
import Posix
import Testing

@testable import DaemonService

/// The number by which a node knows its own downloads after a restart.
struct NodeNumberTests {
    private func settings(in folder: String) async throws -> DaemonConfiguration {
        try await DaemonConfiguration(scalars: ["cache-dir": folder], lists: [:], file: nil)
    }

    @Test func `a number that cannot be read now is not replaced`() async throws {
        let folder = try makeTemporaryFolder("node-number-tests")
        defer { removeTree(folder) }
        let path = folder + "/node"
        var configuration = try await settings(in: folder)
        // A link to itself cannot be opened, not even by root.
        try #require(symlink(path, path) == 0)
        do {
            try configuration.nameNode()
            Issue.record("another number is used")
        } catch {
            #expect(error is ExitCode)
        }
        var target: [CChar] = [0]
        #expect(readlink(path, &target, 1) == 1, "it is still there")
    }

    @Test func `a missing number is made, a good one is kept, and a damaged one replaced`()
        async throws
    {
        let folder = try makeTemporaryFolder("node-number-tests")
        defer { removeTree(folder) }
        let path = folder + "/node"
        var configuration = try await settings(in: folder)
        try configuration.nameNode()
        let made = try readWhole(path, atMost: 100)
        #expect(made.count == 17)
        try configuration.nameNode()
        #expect(try readWhole(path, atMost: 100) == made)
        let long = [UInt8](repeating: 0x61, count: 200)
        try replaceFile(path, with: long, in: folder)
        try configuration.nameNode()
        #expect(try readWhole(path, atMost: 200).count == 17)
    }
}
