// What stories of mounts need: a scripted origin, and the daemon before it.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A daemon with `/mt/` mounted on the folder `/o/` of a scripted origin.
final class MountedStory: Sendable {
    let origin: ScriptedOrigin
    let daemon: DaemonProcess
    private let folder: TemporaryFolder

    init(_ arguments: [String] = []) throws {
        origin = try ScriptedOrigin()
        folder = try TemporaryFolder()
        daemon = try Story.serve(
            folder.file("cache"), ["--mount", "/mt/=\(origin.url("/o/"))"] + arguments)
    }

    deinit {
        daemon.kill(SIGKILL)
        _ = try? daemon.waitForExit()
        origin.stop()
    }

    /// The number of requests so far, this one included.
    func requestCount() throws -> Int {
        try figure("requests_total", in: try player().get("/api/stats").text)
    }

    /// A new player.
    func player() -> ScriptedPlayer { ScriptedPlayer(daemon.baseURL) }

    /// Requests a path of the mount, on a new connection.
    func ask(
        _ method: String, _ path: String, _ headers: [WireHead.Field] = [], body: [UInt8]? = nil
    ) throws -> PlayerResponse {
        try player().get("/mt" + path, headers: headers, method: method, body: body)
    }

    /// Sends bytes as they are.
    func send(_ text: String) throws -> PlayerStream { try player().sendRaw(Array(text.utf8)) }

    var host: String { String(daemon.baseURL.dropFirst(7)) }
}
