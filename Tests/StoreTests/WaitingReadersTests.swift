@testable import Store
import Testing

/// Readers that wait for bytes of one object.
@Suite struct WaitingReadersTests {
    /// Readers at some offsets, and the offsets by the readers' identifiers.
    private struct Crowd {
        var readers = WaitingReaders()
        private var offsets: [UInt64: Int64] = [:]

        init(at offsets: [Int64]) {
            for offset in offsets { _ = add(at: offset) }
        }

        mutating func add(at offset: Int64) -> UInt64 {
            let waiter = Waiter { _ in }
            offsets[waiter.id] = offset
            readers.add(waiter, at: offset)
            return waiter.id
        }

        func places(of waiters: [Waiter]) -> [Int64?] { waiters.map { offsets[$0.id] } }
    }

    @Test func `bytes take the readers that wait for them, in their order, and once`() {
        var crowd = Crowd(at: [30, 10, 20, 19, 10])
        let first = crowd.readers.take(in: 10..<20)
        #expect(crowd.places(of: first) == [10, 10, 19])
        let again = crowd.readers.take(in: 10..<20)
        #expect(again.isEmpty)
        let rest = crowd.readers.takeAll()
        #expect(crowd.places(of: rest) == [20, 30])
    }

    @Test func `the end takes the readers at it and behind it`() {
        var crowd = Crowd(at: [9, 11, 10])
        let atEnd = crowd.readers.take(from: 10)
        #expect(crowd.places(of: atEnd) == [10, 11])
        let rest = crowd.readers.takeAll()
        #expect(crowd.places(of: rest) == [9])
    }

    @Test func `a reader that was removed is not taken`() {
        var crowd = Crowd(at: [10])
        let removed = crowd.add(at: 10)
        crowd.readers.remove(removed)
        crowd.readers.remove(removed)
        let rest = crowd.readers.takeAll()
        #expect(rest.count == 1 && rest.first?.id != removed)
    }
}
