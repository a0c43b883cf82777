// Bytes that are not TLS, or stop being TLS, on a listener that speaks TLS.
import COpenSSL
import FuzzSupport
import Glibc
import HTTP
import HTTPServer
import LocalAuthority
import Posix
import TLS
import Testing

/// `HTTP2_SESSIONS=10000 HTTP2_SEED=7` in the environment runs this many sessions of that seed.
@Suite(.timeLimit(.minutes(10)), .serialized)
struct TLSFuzzTests {
    private static let usual = 300

    /// How a connection differs from that of a correct client.
    private enum Fault: CaseIterable {
        case random, cutHello, changedHello, clear, changedHandshake, garbageAfter, halfRecord
        case keyUpdates, malformedHTTP2, malformedHTTP1, none
    }

    private static func server(_ account: ExchangeAccount) throws -> HTTPServer {
        var template = Array("/tmp/sluice-tls-XXXXXX".utf8CString)
        mkdtemp(&template)
        let path = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let folder = AuthorityFolder(path: path)
        _ = try folder.renew(
            for: try ServerNames(["localhost"]), authorityName: "Tests", now: Int64(time(nil)))
        let certificates = try TLSCertificates([
            TLSFiles(certificate: folder.serverCertificate, key: folder.serverKey)
        ])
        for name in ["authority.pem", "authority.key", "server.pem", "server.key", ".lock"] {
            unlink("\(path)/\(name)")
        }
        rmdir(path)
        let file = try temporaryFile(pattern(200_000))
        let loopback = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        var limits = ServerLimits()
        limits.bodyTimeout = .milliseconds(100)
        limits.writeTimeout = .milliseconds(100)
        limits.lingerTimeout = .milliseconds(50)
        return try HTTPServer(
            addresses: [],
            secure: SecureListening(addresses: [loopback], certificates: certificates), loops: 1,
            limits: limits
        ) { loop in FuzzedHandler(account, file: file, on: loop) }
    }

    /// Exchanges messages until the handshake is complete; false if it fails.
    private static func shakeHands(
        _ client: TLSClient, _ connection: FuzzedConnection,
        patience: CInt = 2000, changing change: (inout [UInt8]) -> Void = { _ in }
    ) -> Bool {
        for _ in 0..<50 {
            client.shakeHands()
            var bytes = client.take()
            change(&bytes)
            if !bytes.isEmpty, !connection.send(bytes, reading: false) { return false }
            if client.isEstablished { return true }
            guard let answer = connection.receive(waiting: patience), !answer.isEmpty else {
                return false
            }
            client.receive(answer)
        }
        return false
    }

    private static func isAnswering(_ port: UInt16) -> Bool {
        let client = TLSClient(protocols: ["http/1.1"])
        let connection = FuzzedConnection(port: port)
        defer { connection.close() }
        guard shakeHands(client, connection) else { return false }
        client.write(Array("GET /bytes HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        connection.send(client.take(), reading: false)
        var content: [UInt8] = []
        while let answer = connection.receive(waiting: 5000), !answer.isEmpty {
            client.receive(answer)
            content += client.read()
            if content.suffix(6).elementsEqual("/bytes".utf8) { return true }
        }
        return false
    }

    private static func open(_ port: UInt16, _ numbers: inout SeededNumbers) -> () -> Void {
        let connection = FuzzedConnection(port: port)
        let fault = numbers.pick(Fault.allCases)
        let isHTTP1 = fault == .malformedHTTP1 || (fault == .none && numbers.chance(50))
        let client = TLSClient(
            protocols: isHTTP1 ? [] : numbers.pick([["h2"], ["x", "h2"], ["http/1.1"]]),
            version: numbers.chance(30) ? TLS1_2_VERSION : TLS1_3_VERSION)
        let session = FuzzedSession(&numbers)
        switch fault {
        case .random: connection.send(numbers.bytes(1 + numbers.below(3000)), reading: true)
        case .clear: connection.send(session.bytes, reading: true)
        case .cutHello, .changedHello:
            client.shakeHands()
            var hello = client.take()
            if fault == .cutHello {
                hello.removeLast(numbers.below(hello.count))
            } else {
                for _ in 0..<(1 + numbers.below(3)) { numbers.flipBit(&hello) }
            }
            connection.send(hello, reading: true)
        case .changedHandshake:
            _ = shakeHands(client, connection, patience: 10) { bytes in
                if numbers.chance(30) { numbers.flipBit(&bytes) }
                if numbers.chance(30) { bytes.removeLast(numbers.below(bytes.count + 1)) }
            }
        default:
            if shakeHands(client, connection) {
                goOn(fault, client, connection, session, isHTTP1: isHTTP1, &numbers)
            }
        }
        return {
            connection.end(session.ending)
            connection.close()
        }
    }

    /// Sends something once the handshake is complete.
    private static func goOn(
        _ fault: Fault, _ client: TLSClient, _ connection: FuzzedConnection,
        _ session: FuzzedSession, isHTTP1: Bool, _ numbers: inout SeededNumbers
    ) {
        let isReading = session.readsAnswers
        let kind = numbers.pick(FuzzedHandler.Kind.allCases).rawValue
        var content =
            isHTTP1 ? Array("GET /\(kind) HTTP/1.1\r\nHost: a\r\n\r\n".utf8) : session.bytes
        switch fault {
        case .malformedHTTP1:
            for _ in 0..<numbers.below(4) { numbers.flipBit(&content) }
        case .keyUpdates:
            for _ in 0..<numbers.pick([1, 5, 40]) {
                client.updateKeys()
                connection.send(client.take(), reading: isReading)
            }
        default: break
        }
        client.write(content)
        var records = client.take()
        if fault == .halfRecord { records.removeLast(numbers.below(records.count)) }
        connection.send(records, reading: isReading)
        if fault == .garbageAfter {
            let count = numbers.pick([0, 1, 16, 17, 100, 16640, 65535])
            // The header of a record of content (RFC 8446 section 5.1), and bytes that are not
            // encrypted.
            let header: [UInt8] = [
                numbers.pick([20, 21, 22, 23, 24, 255]), 3, 3, UInt8(count >> 8),
                UInt8(count & 255),
            ]
            connection.send(header + numbers.bytes(min(count, 17000)), reading: isReading)
        }
        if numbers.chance(30) {
            client.sendEnd()
            connection.send(client.take(), reading: isReading)
        }
    }

    /// In a separate process, because memory and descriptors of other tests would count.
    @Test func `garbage on a TLS listener leaves the server working and no resources in use`() async
    {
        let result = await #expect(
            processExitsWith: .success, observing: [\.standardOutputContent]
        ) {
            let account = ExchangeAccount()
            let server = try TLSFuzzTests.server(account)
            let port = server.boundSecureAddresses[0].port
            FuzzRun(usually: TLSFuzzTests.usual).run(
                server, account, isAnswering: { TLSFuzzTests.isAnswering(port) },
                session: { TLSFuzzTests.open(port, &$0) })
            server.stop()
        }
        FuzzRun.show(result)
    }
}
