// A daemon with a TLS port, and curl as a client of each of its protocols.
import AccessLogFormat
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// How a client reaches the daemon.
enum Carriage: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case clear, secure, secureHTTP2, clearHTTP2

    var testDescription: String { rawValue }
    var isSecure: Bool { self == .secure || self == .secureHTTP2 }
    var isHTTP2: Bool { self == .secureHTTP2 || self == .clearHTTP2 }

    /// The protocol as the access log and curl name it.
    var protocolName: String { isHTTP2 ? "HTTP/2" : "HTTP/1.1" }

    /// The options that make curl use it.
    func options(_ authority: String) -> [String] {
        switch self {
        case .clear: ["--http1.1"]
        case .secure: ["--http1.1", "--cacert", authority]
        case .secureHTTP2: ["--http2", "--cacert", authority]
        case .clearHTTP2: ["--http2-prior-knowledge"]
        }
    }
}

/// A story whose daemon also listens for TLS.
final class SecureStage: Sendable {
    let story: Story
    /// `https://127.0.0.1:8443`.
    let secureURL: String
    private let identities: [Identity]
    private let folder: TemporaryFolder

    init(
        _ identities: [Identity], _ arguments: [String] = [], cdnFolder: String? = nil
    ) throws {
        folder = try TemporaryFolder()
        self.identities = identities
        story = try Story(
            ["--tls-port", "0", "--access-log", folder.file("log")]
                + identities.flatMap(\.options) + arguments, cdnFolder: cdnFolder)
        guard let url = story.daemon.secureURL else {
            throw ScenarioFailure("no ready line for TLS", transcript: story.transcript)
        }
        secureURL = url
    }

    /// The file of the first certificate's authority.
    var authority: String { identities[0].authority }

    /// Lines of the access log, once there are this many.
    func accessLog(_ count: Int) -> [AccessLine] { accessLines(folder.file("log"), count) }

    /// The TLS port as a player of plain HTTP sees it.
    func strayPlayer() -> ScriptedPlayer {
        ScriptedPlayer("http://" + secureURL.dropFirst("https://".count))
    }

    func base(_ carriage: Carriage) -> String {
        carriage.isSecure ? secureURL : story.daemon.baseURL
    }

    /// The response to curl for a path of the daemon.
    func get(
        _ path: String, by carriage: Carriage, _ options: [String] = []
    ) throws -> CurlAnswer {
        try CurlAnswer(
            Tool.run(
                ["curl", "--silent", "--show-error", "--noproxy", "*", "--include"]
                    + carriage.options(authority) + options + [base(carriage) + path]))
    }

    /// Sends SIGHUP and waits until the daemon has logged a text once more than before.
    func reload(untilLogged text: String) throws {
        let before = logged(text)
        story.daemon.kill(SIGHUP)
        guard eventually({ logged(text) > before }) else {
            throw ScenarioFailure("not logged: \(text)", transcript: story.transcript)
        }
    }

    private func logged(_ text: String) -> Int {
        story.daemon.standardError.split(separator: "\n").count { $0.contains(text) }
    }

    /// curl's exit code for an own page over TLS, with an authority to trust; 60 is a certificate
    /// that cannot be authenticated (curl(1)).
    func verify(_ authority: String, as host: String = "127.0.0.1") throws -> Int32 {
        let port = secureURL.split(separator: ":").last ?? ""
        return try Tool.run([
            "curl", "--silent", "--noproxy", "*", "--output", "/dev/null", "--cacert", authority,
            "--resolve", "\(host):\(port):127.0.0.1", "https://\(host):\(port)/api/health",
        ]).status
    }

    /// `openssl s_client` that asks for an own page and waits for the end of the connection.
    func client(_ options: String...) throws -> Tool.Result {
        let address = secureURL.dropFirst("https://".count)
        let request =
            "GET /api/health HTTP/1.1\\r\\nHost: \(address)\\r\\nConnection: close\\r\\n\\r\\n"
        let command =
            ["openssl", "s_client", "-connect", String(address), "-ign_eof"] + options
        let script = "printf '\(request)' | \(command.joined(separator: " "))"
        return try Tool.run(["timeout", "20", "sh", "-c", script])
    }
}

/// The output of curl with `--include`.
struct CurlAnswer {
    let exit: Int32
    let errors: String
    /// The status line and fields, their names in small letters.
    let lines: [String]
    let body: [UInt8]

    init(_ result: Tool.Result) {
        exit = result.status
        errors = result.stderr
        let end = result.output.firstRange(of: Array("\r\n\r\n".utf8))
        let head = String(decoding: result.output[..<(end?.lowerBound ?? 0)], as: UTF8.self)
        lines = head.split(separator: "\r\n").map(String.init)
        body = Array(result.output[(end?.upperBound ?? 0)...])
    }

    var status: Int? { lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } }
    var protocolName: Substring { lines.first?.prefix { $0 != " " } ?? "" }
    var text: String { String(decoding: body, as: UTF8.self) }

    subscript(name: String) -> String? {
        let start = name.lowercased() + ": "
        return lines.dropFirst().first { $0.lowercased().hasPrefix(start) }
            .map { String($0.dropFirst(start.count)) }
    }

    /// The fields that must not depend on the protocol.
    var facts: [String] {
        let names = [
            "Content-Type", "Content-Length", "Content-Range", "ETag", "Accept-Ranges",
            "Cache-Control", "Last-Modified", "Vary",
        ]
        return ["\(status ?? 0)"] + names.map { "\($0): \(self[$0] ?? "-")" }
    }
}
