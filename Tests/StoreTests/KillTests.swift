import Glibc
import Posix
import Reactor
import Store
import Testing

/// Processes that are killed, or exceed limits of the disk, while they store.
@Suite struct KillTests {
    /// The process kills itself while objects grow, are committed and are replaced.
    @Test(.timeLimit(.minutes(4)), arguments: [30, 120, 400])
    func `every byte found after a kill is exact`(milliseconds: UInt32) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, milliseconds] in
            let store = try openStore(path) {
                $0.commitBytes = 20_000
                $0.commitInterval = .milliseconds(10)
                $0.indexInterval = .milliseconds(5)
            }
            // On a busy machine the shortest time may pass before anything is stored.
            try grow(store, "49", total: 60_000)
            try store.flushed()
            let thread = try PosixThread(name: "killer") {
                usleep(milliseconds * 1000)
                kill(getpid(), SIGKILL)
            }
            for round in 0... { try grow(store, "\(round % 50)", total: 60_000) }
            thread.join()
        }
        let store = try openStore(path)
        defer { store.close() }
        var found = 0
        for name in 0..<50 {
            guard let object = store.find("\(name)") else { continue }
            found += 1
            #expect(object.isComplete == (object.presentBytes == 60_000))
            for span in object.spans.ranges { #expect(try read(object, span) == body(span)) }
        }
        #expect(found > 0)
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().objects == found)
        #expect(try listFolder(path + "/new").isEmpty)
    }

    /// A write behind the limit of files gives a typed error, and ends only its own body.
    @Test func `a body that exceeds the limit of files keeps what it has`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            let store = try openStore(path)
            try store.add("kept", total: 1000)
            try store.flushed()
            // Too few descriptors to continue in further files.
            var limit = rlimit(rlim_cur: 100 << 10, rlim_max: 100 << 10)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let object = try store.create(describe("a", total: nil))
            try store.publish(object)
            try fill(object, 0..<1000)
            var refusal: SystemError?
            do {
                let bytes = [UInt8](repeating: 1, count: 100)
                try bytes.withUnsafeBytes { try object.write($0, at: 2 << 20) }
            } catch {
                refusal = error as? SystemError
            }
            #expect(refusal?.isStorageExhausted == true)
            #expect(try read(object, 0..<1000) == body(0..<1000))
            #expect(try store.create(describe("b", total: nil)).isStorable)
            #expect(store.find("kept") != nil)
            store.close()
        }
    }
}

/// Creates a new generation and fills it in small steps.
private func grow(_ store: ObjectStore, _ name: String, total: Int64) throws {
    let object = try store.create(describe(name, total: total))
    try store.publish(object)
    var writer = FillWriter(object, from: 0, to: total)
    while writer.offset < total {
        let end = min(total, writer.offset + 9000)
        try body(writer.offset..<end).withUnsafeBytes { try writer.append($0) }
    }
    writer.end(failure: nil)
    store.finish(object)
}
