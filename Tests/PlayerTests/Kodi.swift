// Kodi on a screen in memory, told what to play through its JSON-RPC interface.
import FixtureCDN
import Glibc
import HTTP
import ScenarioSupport
import URISyntax

/// One Kodi with an empty home folder; ends with this value.
final class Kodi {
    private let screen: ChildProcess
    private let program: ChildProcess
    private let home: TemporaryFolder
    private let remote: ScriptedPlayer
    private let authorization: String

    /// The program itself: the script in PATH starts it anew after a crash.
    static let program: String? = listFolder("/usr/lib").map { "/usr/lib/\($0)/kodi/kodi.bin" }
        .first { access($0, X_OK) == 0 }

    static var isInstalled: Bool {
        program != nil && Tool.exists("Xvfb")
            && listFolder("/usr/share/kodi/addons").contains("inputstream.adaptive")
    }

    /// Starts one and waits until it takes orders.
    init() throws {
        guard let binary = Self.program else { throw ScenarioFailure("no Kodi") }
        home = try TemporaryFolder()
        let port = try freePort()
        // Its web server listens on every address.
        let password = String(UInt64.random(in: .min ... .max), radix: 16)
        authorization = "Basic " + Base64.encode(Array("kodi:\(password)".utf8))
        remote = ScriptedPlayer("http://127.0.0.1:\(port)", deadline: .seconds(30))
        let settings = [
            ("services.webserver", "true"), ("services.webserverport", "\(port)"),
            ("services.webserverauthentication", "true"), ("services.webserverusername", "kodi"),
            ("services.webserverpassword", password), ("services.esenabled", "false"),
            ("services.zeroconf", "false"), ("general.addonupdates", "2"),
        ].map { "<setting id=\"\($0.0)\">\($0.1)</setting>" }
        _ = home.makeFolder(".kodi")
        let userdata = home.makeFolder(".kodi/userdata")
        try writeFile(
            userdata + "/guisettings.xml",
            "<settings version=\"2\">\(settings.joined())</settings>".utf8)
        // Kodi waits forever for a sound card.
        try writeFile(home.file(".asoundrc"), "pcm.!default { type null }\n".utf8)

        let screen = try ChildProcess([
            "Xvfb", "-displayfd", "1", "-screen", "0", "640x360x24", "-nolisten", "tcp",
        ])
        self.screen = screen
        _ = eventually(within: .seconds(30)) {
            screen.standardOutput.last == UInt8(ascii: "\n") || screen.exit != nil
        }
        let display = String(decoding: screen.standardOutput, as: UTF8.self).prefix {
            $0.isNumber
        }
        guard !display.isEmpty else {
            let said = String(decoding: screen.standardError.suffix(600), as: UTF8.self)
            throw ScenarioFailure("Xvfb does not start: \(said)")
        }
        program = try ChildProcess(
            [binary, "--standalone", "--audio-backend=alsa"],
            environment: [
                ("HOME", home.path), ("DISPLAY", ":\(display)"), ("LIBGL_ALWAYS_SOFTWARE", "1"),
            ])
        let isReady = try comes("JSONRPC.Ping", within: .seconds(120)) { $0.contains("pong") }
        guard isReady else {
            throw ScenarioFailure("Kodi takes no orders\n\(log)")
        }
    }

    deinit {
        // It writes its settings at its end.
        program.end(seconds: 20)
        screen.end()
    }

    /// The end of what it logs.
    var log: String {
        let lines = (try? readFile(home.file(".kodi/temp/kodi.log"))) ?? program.standardError
        return String(decoding: lines.suffix(3_000), as: UTF8.self)
    }

    /// Stops what plays and opens a file with these lines as a person opens it in a video source.
    func open(_ lines: String) throws {
        try order("Player.Stop", "{\"playerid\":1}")
        let isIdle = try comes("Player.GetActivePlayers") { $0.contains("\"result\":[]") }
        guard isIdle else {
            throw ScenarioFailure("Kodi does not stop\n\(log)")
        }
        try writeFile(home.file("stream.strm"), lines.utf8)
        try order("Player.Open", "{\"item\":{\"file\":\"\(home.file("stream.strm"))\"}}")
    }

    /// Waits until the played share of the title is over `share`, in per cent, and says what plays;
    /// nil at the deadline.
    func plays(beyond share: Double, within limit: Duration = .seconds(60)) throws -> String? {
        var answer = ""
        let came = try comes(
            "Player.GetProperties",
            "{\"playerid\":1,\"properties\":[\"percentage\",\"videostreams\",\"audiostreams\"]}",
            within: limit
        ) { text in
            answer = text
            guard let start = text.firstRange(of: "\"percentage\":")?.upperBound else {
                return false
            }
            let number = text[start...].prefix { $0.isNumber || $0 == "." }
            return Double(number).map { $0 > share } ?? false
        }
        return came ? answer : nil
    }

    /// Gives an order again until its answer is as wanted; false at the deadline.
    private func comes(
        _ method: String, _ parameters: String = "{}", within limit: Duration = .seconds(30),
        _ isWanted: (String) -> Bool
    ) throws -> Bool {
        try eventually(within: limit, pausing: .milliseconds(100)) {
            if program.exit != nil { throw ScenarioFailure("Kodi has ended\n\(log)") }
            // Before its web server listens, nothing answers.
            return (try? order(method, parameters)).map(isWanted) ?? false
        }
    }

    @discardableResult
    private func order(_ method: String, _ parameters: String) throws -> String {
        let body =
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\",\"params\":\(parameters)}"
        return try remote.get(
            "/jsonrpc",
            headers: [("Content-Type", "application/json"), ("Authorization", authorization)],
            method: "POST", body: Array(body.utf8)
        ).text
    }
}
