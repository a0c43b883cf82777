import Glibc
import HTTP
import Posix
import Reactor
import Synchronization
import Testing
import URISyntax
import Upstream

/// The order in which the bytes of a round are delivered.
@Suite struct OrderTests {
    /// The deliveries in order, and gates at which the origin waits.
    private final class Course: Sendable {
        let events = Mutex<[String]>([])
        let goesOn = Atomic<Bool>(false)
        let hasHead = Atomic<Bool>(false)
        let full = Atomic<Int>(0)
    }

    private static let bodies = 6
    private static let first = 100_000
    /// More than one full read.
    private static let rest = 300_000

    /// Sends the first part of a body, and the rest when the test continues; the head of `/late`
    /// last.
    private func origin(_ course: Course) throws -> TestOrigin {
        try TestOrigin { exchange in
            guard exchange.target != "/late" else {
                comesTrue { course.full.load(ordering: .acquiring) == Self.bodies }
                exchange.respond(body: Array("late".utf8))
                course.hasHead.store(true, ordering: .releasing)
                return .keep
            }
            let length = Self.first + Self.rest
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            exchange.send([UInt8](repeating: 1, count: Self.first))
            comesTrue { course.goesOn.load(ordering: .acquiring) }
            exchange.send([UInt8](repeating: 2, count: Self.rest))
            course.full.add(1, ordering: .acquiringAndReleasing)
            return .keep
        }
    }

    @Test func `a head is delivered before bodies that were ready earlier`() throws {
        let course = Course()
        let origin = try origin(course)
        let harness = try Harness { $0.receiveBuffer = 16 << 10 }
        let script = Script(onBytes: { _, _ in
            if course.goesOn.load(ordering: .acquiring) {
                course.events.withLock { $0.append("body") }
            }
        })
        let bodies = try (0..<Self.bodies).map { try harness.start(origin.url("/\($0)"), script) }
        for body in bodies { body.wait("the first part") { $0.body.count == Self.first } }
        let late = try harness.start(
            origin.url("/late"),
            Script(onHead: { _ in course.events.withLock { $0.append("head") } }))
        #expect(comesTrue { origin.requests.count == Self.bodies + 1 })
        // The loop is blocked until all bytes wait in the sockets.
        bodies[0].act { _ in
            course.goesOn.store(true, ordering: .releasing)
            comesTrue { course.hasHead.load(ordering: .acquiring) }
        }
        late.wait()
        for body in bodies { #expect(body.wait().body.count == Self.first + Self.rest) }
        #expect(course.events.withLock { $0.first } == "head")
        harness.stop()
        origin.stop()
    }
}
