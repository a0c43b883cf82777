import Glibc
import Posix
import Synchronization
import Testing

@testable import Store

/// Bodies longer than the file size limit.
@Suite struct BodyFilesTests {
    @Test(arguments: [262_144, 1_000_001, 1 << 20, 1 << 40] as [Int64])
    func `every position is in exactly one file, within the file size limit`(
        limit: Int64
    ) throws {
        for firstEnd in [0, 1, 65_535, 65_536, min(limit, 5_000_003)] as [Int64] {
            let layout = try #require(BodyLayout(firstEnd: firstEnd, largestFile: limit))
            var position: Int64 = 0
            var part: Int64 = -1
            for _ in 0..<8 {
                let place = layout.place(of: position)
                #expect(place.part > part && place.end > position || firstEnd == 0)
                let last = layout.place(of: place.end - 1)
                #expect(last.part == place.part && last.offset < max(limit, firstEnd))
                #expect(last.offset - place.offset == place.end - 1 - position)
                #expect((position - place.offset) % BodyLayout.cut == 0)
                (position, part) = (place.end, place.part)
            }
        }
    }

    @Test(arguments: [0, 1, 65_536, 131_071] as [Int64])
    func `files that hold less than two pieces are not used`(limit: Int64) {
        #expect(BodyLayout(firstEnd: 0, largestFile: limit) == nil)
    }

    @Test(arguments: [1_000_001, 1 << 20])
    func `a body continues behind the limit, and files that all have read are closed`(
        limit: Int
    ) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String, limit = limit as Int] in
            signal(SIGXFSZ, SIG_IGN)
            let store = try openStore(path) { $0.temporaryFolders = [] }
            var allowed = rlimit(rlim_cur: UInt(limit), rlim_max: UInt(limit))
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &allowed)
            let object = try store.create(describe("a", total: nil))
            try store.publish(object)
            #expect(object.isStorable && !object.isSpread)
            try fill(object, 0..<5_000_000)
            #expect(!object.isStorable && object.isSpread && store.find("a") == nil)
            #expect(try object.readBody(from: 0, count: 5_000_000) == body(0..<5_000_000))
            // Another fill, far behind: the files between stay closed.
            try fill(object, 9_000_000..<9_100_000)
            #expect(
                try object.readBody(from: 9_000_000, count: 100_000) == body(9_000_000..<9_100_000))
            let before = object.state.withLock { $0.files?.parts.count ?? 0 }
            object.punch(upTo: 4_500_000)
            let after = object.state.withLock { $0.files?.parts.count ?? 0 }
            #expect(before >= 5 && after < before - 2, "\(before) \(after)")
            #expect(!object.spans.contains(100_000))
            let left = try object.readBody(from: 4_500_000, count: 500_000)
            #expect(left == body(4_500_000..<5_000_000))
            // A reader that moves back fetches freed bytes again.
            try fill(object, 1_500_000..<1_600_000)
            let again = try object.readBody(from: 1_500_000, count: 100_000)
            #expect(again == body(1_500_000..<1_600_000))
            // A body known to be too long does not stop others from being stored.
            #expect(try !store.create(describe("b", total: 5_000_000)).isStorable)
            #expect(try store.create(describe("c", total: 100_000)).isStorable)
            store.close()
        }
    }

    @Test func `a body that is longer than files does not stop others from being stored`()
        async throws
    {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            let store = try openStore(path)
            func limitFiles(to bytes: UInt) {
                var allowed = rlimit(rlim_cur: bytes, rlim_max: 1 << 20)
                setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &allowed)
            }
            limitFiles(to: 1 << 20)
            let object = try store.create(describe("a", total: nil))
            try fill(object, 1 << 20..<(2 << 20))
            #expect(object.isSpread)
            // Like a file system whose limit is below that of the process: its own file was taken
            // to hold everything before the first byte that was refused.
            limitFiles(to: 512 << 10)
            var refusal: SystemError?
            do {
                try fill(object, 600_000..<700_000)
            } catch { refusal = error as? SystemError }
            #expect(refusal?.code == EFBIG)
            #expect(try store.create(describe("b", total: 100_000)).isStorable)
            store.close()
        }
    }

    @Test func `a body with many files reports that its readers should catch up`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            let store = try openStore(path)
            var allowed = rlimit(rlim_cur: 200 << 10, rlim_max: 200 << 10)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &allowed)
            let object = try store.create(describe("a", total: 40 << 20))
            try fill(object, 0..<(2 << 20))
            #expect(!object.hasManyFiles)
            try fill(object, 2 << 20..<(5 << 20))
            #expect(object.hasManyFiles)
            object.punch(upTo: 4 << 20)
            #expect(!object.hasManyFiles)
            var refusal: SystemError?
            do {
                try fill(object, 5 << 20..<(40 << 20))
            } catch { refusal = error as? SystemError }
            #expect(refusal?.code == EMFILE)
            store.close()
        }
    }
}
