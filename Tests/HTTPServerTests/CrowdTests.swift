// Many connections, fast and slow ones.
import Glibc
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized)
struct CrowdTests {
    /// In a separate process, because the memory of other tests would count.
    ///
    /// Sanitizers hold memory themselves, so nothing can be asserted under them.
    @Test(.enabled(if: ProcessUse.isMemoryTelling))
    func `two thousand idle connections cost less than a kilobyte each`() async {
        await #expect(processExitsWith: .success) {
            let server = try TestServer(loops: 2, echoPath)
            var clients: [TestClient] = []
            clients.reserveCapacity(2100)
            var before = 0
            for index in 0..<2100 {
                if index == 100 { before = ProcessUse.now().residentBytes }
                let client = server.client()
                client.get("/a")
                #expect(client.answer()?.status == 200)
                clients.append(client)
            }
            #expect(server.server.connectionCount == 2100)
            // Including the clients, which are in this process too.
            let cost = (ProcessUse.now().residentBytes - before) / 2000
            #expect(cost < 1024, "\(cost) bytes a connection")
            clients[0].get("/b")
            #expect(clients[0].answer()?.text == "/b")
        }
    }

    @Test func `without free descriptors new connections get 503 and the loop does not spin`() async
    {
        await #expect(processExitsWith: .success) {
            let server = try TestServer(echoPath)
            let first = server.client()
            first.get("/a")
            #expect(first.answer()?.status == 200)
            // The clients' sockets are made in advance: accept4(2) allocates a descriptor for a
            // moment even if no connection waits, so a descriptor left for a client could be taken
            // when it is needed.
            let later = (0..<20).map { _ in TestClient(unconnectedTo: server.port) }
            var limit = rlimit(rlim_cur: rlim_t(dup(0)), rlim_max: 1000)
            close(CInt(limit.rlim_cur))
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let before = server.loopTime()
            for second in later {
                second.connect()
                #expect(second.answer()?.status == 503)
            }
            // The time in which the loop's own time is measured.
            usleep(300_000)
            #expect(server.loopTime().nanoseconds - before.nanoseconds < 50_000_000)
            first.get("/again")
            #expect(first.answer()?.text == "/again")
            first.close()
            for client in later { client.close() }
            #expect(eventually { server.server.connectionCount == 0 })
            let last = server.client()
            last.get("/b")
            #expect(last.answer()?.text == "/b")
        }
    }

    @Test func `readers that do not read delay no other and use no memory`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path == "/endless" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let slow = (0..<20).map { _ in server.client(receiveBuffer: 4096) }
        for client in slow { client.get("/endless") }
        for client in slow { #expect(client.readHead()?.status == 200) }
        let quick = server.client()
        for index in 0..<100 {
            quick.get("/\(index)")
            #expect(quick.answer()?.text == "/\(index)")
        }
    }

    @Test func `a fast reader leaves the others their turns`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path == "/endless" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let port = server.port
        let greedy = try GreedyReader(port: port)
        #expect(eventually { greedy.count > 1 << 20 })
        let quick = server.client()
        for index in 0..<50 {
            quick.get("/\(index)")
            #expect(quick.answer()?.text == "/\(index)")
        }
        greedy.stop()
    }
}
