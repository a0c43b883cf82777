import Glibc
import Logging
@testable import Origin
import Posix
import Store
import Testing

/// Bytes of a response on their way into an object.
@Suite struct ReceivedBodyTests {
    /// A store in a folder of its own, and an object of it.
    private final class Stage {
        private let folder: String
        let store: ObjectStore
        let object: StoredObject

        /// Creates an object of `total` bytes, of which `stored` are there already.
        init(total: Int64, stored: Range<Int64> = 0..<0) throws {
            folder = try makeTemporaryFolder("received")
            var log = Logger(label: "received")
            log.logLevel = .critical
            store = try ObjectStore(
                folder: folder,
                configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0), log: log)
            object = try store.create(
                ObjectDescription(
                    key: ObjectKey(sha256Of: "a"), url: "https://cdn.example.com/a", role: 7,
                    head: Array("head".utf8), total: total, created: .now(), isStorable: true))
            guard !stored.isEmpty else { return }
            var writer = FillWriter(object, from: stored.lowerBound, to: stored.upperBound)
            try ReceivedBodyTests.bytes(stored).withUnsafeBytes { try writer.append($0) }
            writer.end(failure: nil)
        }

        deinit {
            store.close()
            removeTree(folder)
        }
    }

    private static func bytes(_ range: Range<Int64>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    /// What a body asked for, in order; writes are written as `w` and the end of what is written.
    private func receive(
        _ sent: [UInt8], pieces: Int, _ body: inout ReceivedBody, _ object: StoredObject
    ) throws -> [String] {
        var steps: [String] = []
        func write() throws {
            guard body.endPiece() else { return }
            #expect(body.write() == nil)
            body.giveBack { $0 = [] }
            steps.append("w\(try #require(body.writer?.offset))")
        }
        var start = 0
        while start < sent.count {
            let piece = sent[start..<min(start + pieces, sent.count)]
            start += piece.count
            try piece.withUnsafeBytes { raw in
                var rest = raw
                repeat {
                    switch body.take(&rest, over: object, buffer: []) {
                    case .taken: return
                    case .write: try write()
                    case .end: return steps.append("end")
                    case .different: return steps.append("different")
                    case .same:
                        steps.append("same")
                        try body.takeHeld().withUnsafeBytes { held in
                            var rest = held
                            while case .write = body.collect(&rest, buffer: []) { try write() }
                        }
                    }
                } while !rest.isEmpty
            }
        }
        try write()
        return steps
    }

    @Test func `a piece ends at a multiple of its length in the file`() throws {
        let total: Int64 = 600_000
        let stage = try Stage(total: total)
        var body = ReceivedBody()
        body.begin(FillWriter(stage.object, from: 0, to: nil), ExpectedBody(end: total))
        let steps = try receive(Self.bytes(0..<total), pieces: 16_384, &body, stage.object)
        let first = Int64(ReceivedBody.pieceLength) - stage.object.bodyOffset
        let second = first + Int64(ReceivedBody.pieceLength)
        #expect(steps == ["w\(first)", "w\(second)", "w\(total)"])
        #expect(try stage.object.readBody(from: 0, count: Int(total)) == Self.bytes(0..<total))
        body.takeWriter()?.end(failure: nil)
        #expect(stage.object.isComplete && body.position == nil)
    }

    @Test func `the first bytes are written at once, the next ones are collected`() throws {
        let stage = try Stage(total: 5_000)
        var body = ReceivedBody()
        body.begin(
            FillWriter(stage.object, from: 0, to: nil), ExpectedBody(end: 5_000, isAwaited: true))
        #expect(!body.mayBePutOff)
        let steps = try receive(Self.bytes(0..<5_000), pieces: 1_000, &body, stage.object)
        #expect(steps == ["w1000", "w5000"])
    }

    @Test func `bytes beyond the stated end are not taken`() throws {
        let stage = try Stage(total: 5_000)
        var body = ReceivedBody()
        body.begin(FillWriter(stage.object, from: 0, to: 2_000), ExpectedBody(end: 2_000))
        let steps = try receive(Self.bytes(0..<3_000), pieces: 3_000, &body, stage.object)
        #expect(steps == ["end", "w2000"])
    }

    @Test(arguments: [1, 700, 10_000])
    func `a hole is closed once the bytes around its end are the stored ones`(pieces: Int) throws {
        let stage = try Stage(total: 9_000, stored: 4_000..<9_000)
        var body = ReceivedBody()
        body.begin(
            FillWriter(stage.object, from: 1_000, to: 4_000),
            ExpectedBody(end: 4_000, receivedEnd: 5_000, ahead: .checked))
        let steps = try receive(Self.bytes(1_000..<5_000), pieces: pieces, &body, stage.object)
        #expect(steps == ["same", "w4000"])
        #expect(
            try stage.object.readBody(from: 1_000, count: 8_000) == Self.bytes(1_000..<9_000))
    }

    @Test(arguments: [0, 999])
    func `no reader gets the end of a hole whose neighbours differ`(place: Int) throws {
        let stage = try Stage(total: 9_000, stored: 4_000..<9_000)
        var body = ReceivedBody()
        body.begin(
            FillWriter(stage.object, from: 1_000, to: 4_000),
            ExpectedBody(end: 4_000, receivedEnd: 5_000, ahead: .checked))
        var sent = Self.bytes(1_000..<5_000)
        sent[3_000 + place] ^= 1
        let steps = try receive(sent, pieces: 700, &body, stage.object)
        #expect(steps == ["different", "w3999"])
        #expect(stage.object.firstPresent(from: 3_999) == 4_000..<9_000)
    }

    @Test func `stored bytes that cannot be read are a hole, not another version`() throws {
        let stage = try Stage(total: 9_000, stored: 4_000..<9_000)
        var body = ReceivedBody()
        body.begin(
            FillWriter(stage.object, from: 3_999, to: 4_000),
            ExpectedBody(end: 4_000, receivedEnd: 5_000, ahead: .checked))
        // No byte can be read from a folder.
        let folder = try openFile("/", flags: O_RDONLY)
        let isReplaced = dup2(folder.number, stage.object.descriptor.number) >= 0
        #expect(isReplaced)
        let sent = Self.bytes(3_999..<5_000)
        let step = sent.withUnsafeBytes { raw in
            var rest = raw
            return body.take(&rest, over: stage.object, buffer: [])
        }
        #expect(step == .same)
        #expect(body.takeHeld() == Self.bytes(3_999..<4_000))
        #expect(stage.object.presentBytes == 0 && !stage.object.isDiscarded)
    }

    @Test func `a held body is handed over whole, once`() throws {
        let stage = try Stage(total: 300)
        var body = ReceivedBody()
        let bytes = Self.bytes(0..<300)
        #expect(!bytes[..<200].withUnsafeBytes { body.hold($0, total: 300) })
        #expect(body.held(300) == nil)
        #expect(bytes[200...].withUnsafeBytes { body.hold($0, total: 300) })
        #expect(body.held(300) == bytes && body.held(nil) == nil)
        // It was not written with this object, which lacks its body.
        #expect(body.forgetWritten(with: stage.object) == nil)
        body.begin(FillWriter(stage.object, from: 0, to: nil), ExpectedBody(end: 300))
        #expect(body.held(300) == nil && body.position == 300)
    }
}
