/// Many connections, and unequal ones.
import Glibc
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized)
struct CrowdTests {
    private func residentBytes() -> Int {
        guard let file = try? openFile("/proc/self/statm", flags: O_RDONLY) else { return 0 }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file.number, &bytes, bytes.count)
        let words = String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self).split(separator: " ")
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * 4096
    }

    @Test func `two thousand idle connections cost less than four megabytes`() throws {
        let server = try TestServer(loops: 2, echoPath)
        var clients = (0..<100).map { _ in server.client() }
        for client in clients {
            client.get("/warm")
            #expect(client.answer()?.status == 200)
        }
        let before = residentBytes()
        while clients.count < 2100 {
            let client = server.client()
            client.get("/a")
            #expect(client.answer()?.status == 200)
            clients.append(client)
        }
        #expect(server.server.connectionCount == 2100)
        let cost = residentBytes() - before
        #expect(cost < 4 << 20, "\(cost / 2000) bytes a connection, client included")
        let last = server.client()
        last.get("/b")
        #expect(last.answer()?.text == "/b")
    }

    /// Trap 33.
    @Test func `readers that do not read hold up nobody and grow nothing`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path == "/endless" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let slow = (0..<20).map { _ in server.client(receiveBuffer: 4096) }
        for client in slow { client.get("/endless") }
        for client in slow { #expect(client.readHead()?.status == 200) }
        let quick = server.client()
        let start = Monotonic.now()
        for index in 0..<100 {
            quick.get("/\(index)")
            #expect(quick.answer()?.text == "/\(index)")
        }
        #expect(Monotonic.now() - start < .milliseconds(2000))
    }

    @Test func `a reader that takes all it is given leaves the others their turns`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            guard request.path == "/endless" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let port = server.port
        let greedy = try GreedyReader(port: port)
        #expect(eventually { greedy.count > 1 << 20 })
        let quick = server.client()
        let start = Monotonic.now()
        for index in 0..<50 {
            quick.get("/\(index)")
            #expect(quick.answer()?.text == "/\(index)")
        }
        #expect(Monotonic.now() - start < .milliseconds(3000))
        greedy.stop()
    }
}
