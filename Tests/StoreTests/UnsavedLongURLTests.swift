import Testing

@testable import Store

/// Long URLs that wait for the index.
@Suite struct UnsavedLongURLTests {
    private static let url = String(repeating: "x", count: 1_000)
    /// The room for ten of them.
    private static let room = 10 * (1_000 + UnsavedLongURLs.overhead)

    private func ids(_ numbers: Range<UInt8>) -> [[UInt8]] { numbers.map { [$0] } }

    private func add(_ numbers: Range<UInt8>, to unsaved: inout UnsavedLongURLs) {
        for id in ids(numbers) { _ = unsaved.add(Self.url, id: id) }
    }

    @Test func `those of a long list wait for an index that fails`() {
        var unsaved = UnsavedLongURLs()
        for number in 0..<3_000 {
            _ = unsaved.add(Self.url, id: [UInt8(number % 256), UInt8(number / 256)])
            unsaved.noteFailure()
        }
        #expect(unsaved.urls.count == 3_000)
    }

    @Test func `beyond the limit in bytes the oldest are dropped`() {
        var unsaved = UnsavedLongURLs(limit: Self.room)
        add(0..<100, to: &unsaved)
        let waiting = unsaved.next().map { $0.id }
        #expect(waiting == ids(90..<100))
        #expect(Set(unsaved.urls.keys) == Set(waiting))
    }

    @Test func `links do without names before the limit is reached`() {
        var unsaved = UnsavedLongURLs(limit: Self.room)
        add(0..<5, to: &unsaved)
        #expect(unsaved.hasRoom)
        add(5..<6, to: &unsaved)
        #expect(!unsaved.hasRoom)
        // One that waits already takes no more room.
        add(0..<6, to: &unsaved)
        let batch = unsaved.next()
        #expect(batch.count == 6)
        unsaved.noteSaved(batch)
        #expect(unsaved.hasRoom && unsaved.urls.isEmpty)
    }

    @Test func `one that waits is tried until it is saved, then all others`() {
        var unsaved = UnsavedLongURLs()
        let isFirst = unsaved.add(Self.url, id: [0])
        unsaved.noteFailure()
        let isTold = unsaved.add(Self.url, id: [1])
        #expect(isFirst && !isTold && !unsaved.hasRoom)
        add(2..<9, to: &unsaved)
        let attempt = unsaved.next()
        #expect(attempt.map { $0.id } == [[0]])
        unsaved.noteSaved(attempt)
        #expect(unsaved.hasRoom)
        let rest = unsaved.next()
        #expect(rest.map { $0.id } == ids(1..<9))
        unsaved.noteSaved(rest)
        let end = unsaved.next()
        let isToldAgain = unsaved.add(Self.url, id: [9])
        #expect(end.isEmpty && isToldAgain)
    }

    @Test func `what was dropped while it was saved and then added again is not lost`() {
        var unsaved = UnsavedLongURLs(limit: Self.room)
        add(0..<10, to: &unsaved)
        let batch = unsaved.next()
        add(10..<15, to: &unsaved)
        unsaved.noteSaved(batch)
        #expect(Set(unsaved.urls.keys) == Set(ids(10..<15)))
        add(0..<3, to: &unsaved)
        let waiting = unsaved.next().map { $0.id }
        #expect(waiting == ids(10..<15) + ids(0..<3))
    }
}
