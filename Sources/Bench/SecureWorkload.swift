import Glibc
import Posix

/// Misses from an origin behind TLS: nginx serves one file under any name, over HTTP/1.1 only and
/// over HTTP/2.
enum SecureWorkload {
    static func run(_ round: Round) throws {
        for (id, isHTTP2) in [("h1", false), ("h2", true)] where round.needs("secure.\(id)") {
            let front = try SecureOrigin(in: round.bench.folder.path, isHTTP2: isHTTP2)
            let opened = try front.accepted
            let proxy = try ProxyUnderTest(
                round.proxy.peer, folder: round.bench.folder.path, origin: front.origin)
            let count = max(8, round.options.times(100))
            let paths = (0..<count).map { proxy.path("/\(round.salt)-\($0).ts") }
            let shape = LoadShape(
                requests: count, connections: 8, seconds: 3 * round.options.loadSeconds)
            let (result, processor) = try round.bench.measured(proxy, paths, shape)
            round.addTransfer("secure.\(id)", result, processor)
            // The query itself opens one.
            round.add("secure.\(id).opened", try front.accepted - opened - 1)
        }
    }
}

/// An nginx with TLS that serves 2 MB under any name.
final class SecureOrigin {
    let origin: BenchOrigin
    private let program: RunningProgram
    private let status: SocketAddress

    /// Whether nginx and openssl are installed.
    static var isAvailable: Bool {
        findProgram("nginx") != nil && findProgram("openssl") != nil
    }

    init(in parent: String, isHTTP2: Bool) throws {
        guard let nginx = findProgram("nginx"), let openssl = findProgram("openssl") else {
            throw BenchError("nginx and openssl have to be installed for an origin behind TLS")
        }
        let folder = "\(parent)/tls"
        try makeFolder(folder)
        chmod(folder, 0o777)
        if access("\(folder)/certificate.pem", F_OK) != 0 {
            try writeText(
                String(repeating: "0123456789abcde\n", count: 1 << 17), to: "\(folder)/2MB")
            let arguments = [
                openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bench",
                "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "\(folder)/key.pem", "-out",
                "\(folder)/certificate.pem",
            ]
            try RunningProgram.runToEnd(arguments, in: folder)
        }
        origin = BenchOrigin(
            port: try freePort(), isSecure: true,
            certificate: "\(folder)/certificate.pem", speaksHTTP2: isHTTP2)
        status = SocketAddress(loopbackPort: try freePort())
        let words = [
            "folder": folder, "port": "\(origin.port)", "status": "\(status.port)",
            "http2": isHTTP2 ? "http2" : "",
        ]
        try PeerFiles.write(template: "origin-tls.conf", to: "\(folder)/nginx.conf", words)
        program = try RunningProgram(
            quiet: [nginx, "-c", "\(folder)/nginx.conf", "-p", folder], in: folder, to: status)
        let deadline = Monotonic.now() + .seconds(10 as Int64)
        while (try? accepted) == nil {
            guard Monotonic.now() < deadline else {
                throw BenchError("the TLS origin: \(readText("\(folder)/output").suffix(300))")
            }
            usleep(5_000)
        }
    }

    /// Connections that it has accepted, including the one of this query.
    var accepted: Double {
        get throws {
            let text = try getText(status, "/")
            // " accepts handled requests\n 12 12 30" (ngx_http_stub_status_module)
            guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(" ") }),
                let number = line.split(separator: " ").first.flatMap({ Double($0) })
            else { throw BenchError("the TLS origin does not tell its connections") }
            return number
        }
    }
}
