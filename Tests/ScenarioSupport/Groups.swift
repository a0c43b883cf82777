// Groups of suites by the load they tolerate, and one queue of tests for several runners.
import Glibc
import Synchronization
package import Testing

extension Tag {
    /// The suite asserts no times: it runs beside as many others as there are runners, and gets what
    /// processor time the players leave.
    @Tag package static var crowded: Self
    /// The suite runs real players and browsers: one at a time beside the crowd, two after it.
    @Tag package static var players: Self
    /// The suite asserts times, memory or counts that a busy machine changes: it runs beside few.
    @Tag package static var timed: Self
    /// The suite exercises several threads of the daemon: it also runs under the thread sanitizer.
    @Tag package static var threads: Self
}

/// Runs the tests of one group only, and shares them among several runners.
///
/// `STORIES_GROUP` names a tag; without it every test runs. `STORIES_QUEUE` names a folder that
/// runners with equal arguments share: a test, or one case of a parameterized test, runs in the
/// runner that creates its file there and is cancelled in the others. A runner that has begun leaves
/// an empty file whose name is that of the folder and its process number.
package struct Grouping: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func prepare(for test: Test) async throws {
        guard !test.isSuite else { return }
        guard [Tag.crowded, .players, .timed].count(where: test.tags.contains) == 1 else {
            throw GroupingError(
                "the suite of \(test.name) needs .tags(.crowded), .tags(.players) or .tags(.timed)")
        }
        guard let name = Self.environment("STORIES_GROUP") else { return }
        guard let group = Self.groups[name] else {
            throw GroupingError("STORIES_GROUP=\(name) is none of \(Self.groups.keys.sorted())")
        }
        if !test.tags.contains(group) { try Test.cancel("of another group") }
    }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
        guard Self.environment("STORIES_QUEUE") != nil, !test.isSuite else { return nil }
        return test.isParameterized == (testCase != nil) ? self : nil
    }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        if let queue = Self.environment("STORIES_QUEUE") {
            _ = Self.hasBegun
            if try !Self.claims(test, in: queue) { try Test.cancel("run by another runner") }
        }
        try await function()
    }

    private static let groups: [String: Tag] = [
        "crowded": .crowded, "players": .players, "timed": .timed, "threads": .threads,
    ]

    /// Leaves the file that tells that this runner has begun, once.
    private static let hasBegun: Bool = {
        let queue = environment("STORIES_QUEUE") ?? ""
        let file = open("\(queue).\(getpid())", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        if file >= 0 { close(file) }
        return file >= 0
    }()

    /// How many cases of each test this runner has reached; all runners have the same order.
    private static let cases = Mutex<[String: Int]>([:])

    /// Creates the file of the test's next case in `queue`; false if another runner has.
    private static func claims(_ test: Test, in queue: String) throws -> Bool {
        let place = "\(test.sourceLocation.fileName):\(test.sourceLocation.line)"
        let number = cases.withLock { cases in
            cases[place, default: 0] += 1
            return cases[place, default: 0]
        }
        let path = "\(queue)/\(place):\(number)"
        let file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard file < 0 else {
            close(file)
            return true
        }
        let error = errno
        if error == EEXIST { return false }
        throw GroupingError("\(path) cannot be created: \(String(cString: strerror(error)))")
    }

    private static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }
}

private struct GroupingError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension Trait where Self == Grouping {
    /// Selects and shares tests as the environment says; once on each outermost suite.
    package static var grouped: Self { Self() }
}
