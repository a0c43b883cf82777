@testable import Routing
import Testing

/// Finding the mount of a path among many.
struct MountTableTests {
    private func table(_ paths: [String]) throws -> MountTable {
        MountTable(try paths.map { try Mount("\($0)=http://origin.example/x/") })
    }

    @Test(arguments: [
        ("/aa/x", "/aa/"), ("/aa/", "/aa/"), ("/aa/bb/x", "/aa/bb/"), ("/aa/bbb/x", "/aa/"),
        ("/aa/bb/cc/dd", "/aa/bb/"), ("/ab/", "/ab/"), ("/aa", nil), ("/", nil), ("/ac/x", nil),
        ("/aa/bb", "/aa/"), ("", nil),
    ])
    func `the longest matching mount path wins`(
        _ path: String, _ expected: String?
    ) throws {
        let mounts = try table(["/aa/", "/ab/", "/aa/bb/"])
        #expect(mounts.mount(for: path)?.path == expected)
    }

    @Test func `the root mount takes all other paths`() throws {
        let mounts = try table(["/", "/aa/"])
        #expect(mounts.mount(for: "/bb/cc")?.path == "/")
        #expect(mounts.mount(for: "/")?.path == "/")
        #expect(mounts.mount(for: "/aa/cc")?.path == "/aa/")
    }

    @Test func `a table of no mounts and one of thousands find the right mount`() throws {
        #expect(try table([]).mount(for: "/aa/") == nil)
        let many = try table((0..<5000).map { "/site\($0)/" })
        #expect(many.count == 5000)
        for number in [0, 9, 10, 4999] {
            #expect(many.mount(for: "/site\(number)/a/b/c")?.path == "/site\(number)/")
        }
    }
}
