// The number of sessions of a run, its seed, and the checks of a server after each batch.
import FuzzSupport
import Glibc
import HTTPServer
import Posix
import Testing

/// `HTTP2_SESSIONS` and `HTTP2_SEED` of the environment override the defaults.
struct FuzzRun {
    let sessions: Int
    let seed: UInt64

    init(usually sessions: Int) {
        self.sessions = Self.number("HTTP2_SESSIONS") ?? sessions
        seed = UInt64(truncatingIfNeeded: Self.number("HTTP2_SEED") ?? 1)
    }

    private static func number(_ name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }

    /// Prints the figures of a run in a separate process, if a number of sessions was requested.
    static func show(_ result: ExitTest.Result?) {
        guard number("HTTP2_SESSIONS") != nil else { return }
        print(String(decoding: result?.standardOutputContent ?? [], as: UTF8.self))
    }

    /// Sessions that are open at once.
    static let group = 25
    private static let groupsInBatch = 4

    /// Has all sessions, group by group, and checks the server after each batch.
    ///
    /// - Parameters:
    ///   - server: The server that the sessions are had with.
    ///   - account: What its handlers noted.
    ///   - isAnswering: Whether a client without fault is answered.
    ///   - session: Opens a session of numbers that belong to it alone; it ends when called again.
    func run(
        _ server: HTTPServer, _ account: ExchangeAccount, isAnswering: () -> Bool,
        session: (inout SeededNumbers) -> () -> Void
    ) {
        var done = 0, batch = 0
        var first: ProcessUse?
        let start = ContinuousClock.now
        while done < sessions {
            for _ in 0..<Self.groupsInBatch {
                let ends = (0..<Self.group).map { index in
                    var numbers = SeededNumbers(seed: seed << 32 + UInt64(done + index))
                    return session(&numbers)
                }
                done += Self.group
                #expect(isAnswering(), "a good client, after session \(done) of seed \(seed)")
                for end in ends { end() }
            }
            batch += 1
            let place: Comment = "after session \(done) of seed \(seed)"
            #expect(eventually { server.connectionCount == 0 }, place)
            #expect(eventually { account.counts.isSettled }, "\(account.counts) \(place)")
            #expect(account.counts.repeats == 0, place)
            // The first batches fill what is kept for reuse.
            if first == nil, done * 4 >= sessions { first = .now() }
        }
        guard let first else { return }
        let last = ProcessUse.now(), grown = last.residentBytes - first.residentBytes
        print(
            "\(done) sessions, \(account.counts), \(ContinuousClock.now - start), memory"
                + " \(first.residentBytes >> 10) to \(last.residentBytes >> 10) KiB,"
                + " descriptors \(first.descriptors) to \(last.descriptors)")
        fflush(nil)
        #expect(last.descriptors <= first.descriptors)
        guard ProcessUse.isMemoryTelling else { return }
        #expect(grown < 4 << 20 + done * 100, "\(grown) bytes after \(done) sessions")
    }
}
