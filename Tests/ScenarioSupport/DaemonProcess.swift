package import FixtureCDN
import Glibc
import Synchronization

/// The built daemon as a child process: started, observed, measured, ended by its process id.
package final class DaemonProcess: Sendable {
    private let child: ChildProcess
    private let transcript: Transcript
    /// The URL of the ready line: `http://127.0.0.1:8080`, without a slash at the end; `https` if
    /// the daemon listens for TLS only.
    package let baseURL: String

    /// Starts `sluice` with `arguments` and waits for its ready line, `sluice ready
    /// http://HOST:PORT`.
    ///
    /// The binary is `$SLUICE_BINARY`, or the one built beside the running tests. Throws with the
    /// transcript if it ends or stays silent.
    package init(
        _ arguments: [String], binary: String? = nil,
        environment: [(name: String, value: String)] = [], handed: [Int32] = [],
        transcript: Transcript = Transcript(), within limit: Duration = patience
    ) throws {
        self.transcript = transcript
        let program = try binary ?? Self.builtBinary()
        transcript.note("scenario", "starts \(([program] + arguments).joined(separator: " "))")
        let child = try ChildProcess(
            [program] + arguments, environment: environment, handed: handed
        ) {
            transcript.bytes($0 == .standard ? "sluice stdout" : "sluice stderr", $1)
        }
        self.child = child
        // The line of the plain port comes first.
        func url() -> String? { Self.readyURL(child) ?? Self.readyURL(child, scheme: "https") }
        _ = eventually(within: limit) { url() != nil || child.exit != nil }
        guard let url = url() else {
            child.kill(SIGKILL)
            _ = child.waitForExit()
            throw ScenarioFailure("\(program) did not say that it is ready", transcript: transcript)
        }
        baseURL = url
    }

    deinit {
        child.kill(SIGKILL)
    }

    package var pid: Int32 { child.pid }
    package var standardOutput: String { String(decoding: child.standardOutput, as: UTF8.self) }
    package var standardError: String { String(decoding: child.standardError, as: UTF8.self) }
    package var isRunning: Bool { child.exit == nil }

    /// Sends a signal.
    package func kill(_ signal: Int32) {
        transcript.note("scenario", "sends signal \(signal) to sluice")
        child.kill(signal)
    }

    /// Waits for the end; throws when it still runs at the deadline.
    package func waitForExit(within limit: Duration = patience) throws -> ChildProcess.Exit {
        guard let exit = child.waitForExit(seconds: limit / .seconds(1)) else {
            throw ScenarioFailure("sluice did not end", transcript: transcript)
        }
        return exit
    }

    /// Asks it to end with SIGTERM and waits.
    @discardableResult
    package func terminate(within limit: Duration = patience) throws -> ChildProcess.Exit {
        kill(SIGTERM)
        return try waitForExit(within: limit)
    }

    /// Resident memory in bytes (proc(5), `VmRSS`).
    package var rssBytes: Int { statusKilobytes("VmRSS") * 1024 }

    /// Anonymous resident memory in bytes (`RssAnon`).
    package var anonymousBytes: Int { statusKilobytes("RssAnon") * 1024 }

    /// Threads alive.
    package var threadCount: Int { statusKilobytes("Threads") }

    /// Open descriptors.
    package var descriptorCount: Int { listFolder("/proc/\(pid)/fd").count }

    /// How long its event loops have waited for a processor since their start, added up
    /// (proc(5), `schedstat`).
    package var loopDelay: Duration {
        let folder = "/proc/\(pid)/task"
        let delays = listFolder(folder).map { thread -> Int64 in
            guard let name = try? readFile("\(folder)/\(thread)/comm"),
                let times = try? readFile("\(folder)/\(thread)/schedstat"),
                name.starts(with: "http-".utf8) || name.starts(with: "upstream".utf8)
            else { return 0 }
            let words = String(decoding: times, as: UTF8.self).split(separator: " ")
            return words.count > 1 ? Int64(words[1]) ?? 0 : 0
        }
        return .nanoseconds(delays.reduce(0, +))
    }

    private func statusKilobytes(_ name: String) -> Int {
        guard let bytes = try? readFile("/proc/\(pid)/status") else { return 0 }
        for line in bytes.split(separator: 0x0A) where line.starts(with: Array("\(name):".utf8)) {
            let digits = line.filter { (0x30...0x39).contains($0) }
            return Int(String(decoding: digits, as: UTF8.self)) ?? 0
        }
        return 0
    }

    /// The URL of the TLS port's ready line: `https://127.0.0.1:8443`; nil without such a port.
    package var secureURL: String? {
        var found: String?
        _ = eventually(within: .seconds(2)) {
            found = Self.readyURL(child, scheme: "https")
            return found != nil
        }
        return found
    }

    private static func readyURL(_ child: ChildProcess, scheme: String = "http") -> String? {
        let prefix = Array("sluice ready \(scheme)://".utf8)
        // Only whole lines: the last piece may still be growing.
        let lines = child.standardOutput.split(separator: 0x0A, omittingEmptySubsequences: false)
        guard let line = lines.dropLast().first(where: { $0.starts(with: prefix) }) else {
            return nil
        }
        let url = String(decoding: line.dropFirst(13), as: UTF8.self).prefix { $0 != " " }
        return url.hasSuffix("/") ? String(url.dropLast()) : String(url)
    }

    /// The path of the daemon these tests belong to.
    package static func builtBinary() throws -> String {
        if let chosen = getenv("SLUICE_BINARY") { return String(cString: chosen) }
        return try Tool.built("sluice")
    }
}
