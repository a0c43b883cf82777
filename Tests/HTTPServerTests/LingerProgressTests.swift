import Posix
import Testing

@testable import HTTPServer

/// How long a connection is kept whose last response was sent.
struct LingerProgressTests {
    private static func discard(
        _ outcomes: [ReadOutcome], limit: Int, _ progress: inout LingerProgress
    ) -> (isOver: Bool, left: Int) {
        var rest = outcomes[...]
        let isOver = progress.discardInput(limit: limit) { rest.popFirst() ?? .wouldBlock }
        return (isOver, rest.count)
    }

    @Test func `input up to the limit is discarded, over several turns`() {
        var progress = LingerProgress()
        let first = Self.discard([.bytes(60), .wouldBlock], limit: 100, &progress)
        #expect(!first.isOver && first.left == 0)
        let second = Self.discard([.bytes(40), .wouldBlock], limit: 100, &progress)
        #expect(!second.isOver)
        let third = Self.discard([.bytes(1), .bytes(1)], limit: 100, &progress)
        #expect(third.isOver && third.left == 1)
    }

    @Test func `a client that has closed is not waited for`() {
        var progress = LingerProgress()
        let end = Self.discard([.bytes(1), .end, .bytes(1)], limit: 100, &progress)
        #expect(end.isOver && end.left == 1)
    }
}
