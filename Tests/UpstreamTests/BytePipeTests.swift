import Synchronization
import Testing
import Upstream

/// A bounded pipe between two threads, which distinguishes complete from incomplete bodies.
struct BytePipeTests {
    private final class Calls: Sendable {
        private let number = Mutex(0)
        func add() { number.withLock { $0 += 1 } }
        var count: Int { number.withLock { $0 } }
    }

    private func write(_ bytes: [UInt8], _ pipe: BytePipe, _ calls: Calls = Calls()) -> Bool {
        bytes.withUnsafeBytes { pipe.write($0) { calls.add() } }
    }

    @Test func `bytes are read as written, all available ones at once`() {
        let pipe = BytePipe(capacity: 10)
        let more = Calls()
        #expect(pipe.take { more.add() } == .wait)
        #expect(write([1, 2], pipe) && write([3], pipe))
        #expect(more.count == 1)
        #expect(pipe.take {} == .bytes([1, 2, 3]))
        pipe.end(isWhole: true)
        #expect(pipe.take {} == .end)
    }

    @Test func `a writer that filled the pipe is called once there is room`() {
        let pipe = BytePipe(capacity: 4)
        let room = Calls()
        #expect(write([1, 2, 3], pipe, room))
        #expect(!write([4, 5], pipe, room))
        #expect(room.count == 0)
        #expect(pipe.take {} == .bytes([1, 2, 3, 4, 5]))
        #expect(room.count == 1)
        #expect(pipe.take {} == .wait && room.count == 1)
    }

    @Test func `bytes written before an end are read before it`() {
        for isWhole in [true, false] {
            let pipe = BytePipe()
            _ = write([7], pipe)
            pipe.end(isWhole: isWhole)
            pipe.end(isWhole: !isWhole)
            #expect(pipe.take {} == .bytes([7]))
            #expect(pipe.take {} == (isWhole ? .end : .broken))
        }
    }

    @Test func `an end wakes a waiting reader`() {
        let pipe = BytePipe()
        let more = Calls()
        #expect(pipe.take { more.add() } == .wait)
        pipe.end(isWhole: false)
        #expect(more.count == 1)
    }

    @Test func `a closed pipe stores nothing and does not block its writer`() {
        let pipe = BytePipe(capacity: 1)
        let room = Calls()
        #expect(!write([1, 2], pipe, room))
        pipe.close()
        #expect(room.count == 1)
        #expect(write([3, 4], pipe, room))
        #expect(pipe.take {} == .wait)
    }

    @Test func `the first read of an empty pipe is reported once`() {
        let pipe = BytePipe()
        let wishes = Calls()
        pipe.whenWanted { wishes.add() }
        #expect(wishes.count == 0)
        #expect(pipe.take {} == .wait && pipe.take {} == .wait)
        #expect(wishes.count == 1)
    }
}
