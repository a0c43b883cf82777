import Glibc
import ScenarioSupport
import Testing

/// Conditions that lower the concurrency, and a network change, under the shipped program in a
/// namespace with its own kernel files.
extension Stories {
    @Suite(.tags(.timed), .enabled(if: geteuid() == 0, "name spaces need root"))
    struct DownloadSurroundings {
        @Test(arguments: [
            ("memory", "some avg10=50.00 avg60=1.00 avg300=1.00 total=5", 2, "memory is short"),
            ("memory", "some avg10=0.00 avg60=1.00 avg300=1.00 total=5", 4, "to begin with"),
        ])
        func `system pressure lowers the concurrency, and the metrics show it`(
            file: String, text: String, limit: Int, reason: String
        ) throws {
            let stage = try SurroundedDaemon { folder in
                try writeFile(folder + "/pressure", Array((text + "\n").utf8))
                return "mount --bind \(folder)/pressure /proc/pressure/\(file)"
            }
            #expect(try stage.hasFigures("\"ahead_limit\":\(limit)", reason))
        }

        @Test(arguments: [
            ("Discharging", "10", "the battery is low"), ("Charging", "10", "to begin with"),
        ])
        func `a discharging battery lowers the concurrency`(
            status: String, charge: String, reason: String
        ) throws {
            let stage = try SurroundedDaemon { folder in
                mkdir(folder + "/supply", 0o755)
                mkdir(folder + "/supply/BAT0", 0o755)
                for (name, text) in [("type", "Battery"), ("status", status), ("capacity", charge)]
                {
                    try writeFile("\(folder)/supply/BAT0/\(name)", Array((text + "\n").utf8))
                }
                return "mount --bind \(folder)/supply /sys/class/power_supply"
            }
            #expect(try stage.hasFigures("\"ahead_limit\":4", reason))
        }

        @Test func `a network change is noticed, and a mobile network is recognized`() throws {
            let stage = try SurroundedDaemon { _ in "true" }
            #expect(!stage.daemon.standardError.contains("network changed"))
            for words in [
                "link add wwan0 type bridge", "address add 192.0.2.2/24 dev wwan0",
                "link set wwan0 up", "route add default via 192.0.2.1",
            ] {
                let done = try stage.inside(["ip"] + words.split(separator: " ").map(String.init))
                try #require(done.status == 0)
            }
            let isHeard = eventually {
                stage.daemon.standardError.contains("network=wwan0-010200C0")
            }
            #expect(isHeard)
            #expect(try stage.hasFigures("\"ahead_limit\":4", "a mobile network"))
        }
    }
}

/// A daemon in its own mount and network namespaces.
private final class SurroundedDaemon {
    let daemon: DaemonProcess
    private let folder: TemporaryFolder

    /// `prepare` receives a folder to write to, and returns a command to run before the daemon.
    init(_ prepare: (String) throws -> String) throws {
        folder = try TemporaryFolder()
        let place = folder.makeFolder("made")
        let command = try prepare(place)
        let program = try DaemonProcess.builtBinary()
        daemon = try DaemonProcess(
            [
                "--net", "--mount", "sh", "-ec",
                "ip link set lo up; \(command); exec \"$0\" \"$@\"", program, "serve", "--port",
                "0", "--cache-dir", folder.file("cache"),
            ], binary: "unshare")
    }

    func inside(_ command: [String]) throws -> Tool.Result {
        try Tool.run(["nsenter", "--target", "\(daemon.pid)", "--net"] + command)
    }

    /// Whether the daemon's figures contain texts before the deadline.
    func hasFigures(_ texts: String...) throws -> Bool {
        let program = try DaemonProcess.builtBinary()
        return try eventually {
            let words = [program, "stats", "--json", "--daemon", daemon.baseURL]
            let figures = try inside(words).stdout
            return texts.allSatisfy { figures.contains($0) }
        }
    }
}
