// What stories of mounts need: a scripted origin, and the daemon before it.
import Glibc

/// A daemon with `/mt/` mounted on the folder `/o/` of a scripted origin.
package final class MountedStory: Sendable {
    package let origin: ScriptedOrigin
    package let daemon: DaemonProcess
    private let folder: TemporaryFolder

    package init(_ arguments: [String] = []) throws {
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
    package func requestCount() throws -> Int {
        try figure("requests_total", in: try player().get("/api/stats").text)
    }

    /// A new player.
    package func player() -> ScriptedPlayer { ScriptedPlayer(daemon.baseURL) }

    /// Requests a path of the mount, on a new connection.
    package func ask(
        _ method: String, _ path: String, _ headers: [WireHead.Field] = [], body: [UInt8]? = nil
    ) throws -> PlayerResponse {
        try player().get("/mt" + path, headers: headers, method: method, body: body)
    }

    /// Sends bytes as they are.
    package func send(_ text: String) throws -> PlayerStream {
        try player().sendRaw(Array(text.utf8))
    }

    package var host: String { String(daemon.baseURL.dropFirst(7)) }
}
