import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Settings other than mounts, which change while the daemon runs.
extension Stories {
    @Suite(.tags(.crowded, .threads)) struct SettingsReloadTests {
        /// A daemon with a configuration file.
        private final class Stage {
            let folder: TemporaryFolder
            let file: String
            let daemon: DaemonProcess
            var player: ScriptedPlayer { ScriptedPlayer(daemon.baseURL) }

            init(_ settings: String) throws {
                folder = try TemporaryFolder()
                file = folder.file("sluice.json")
                try writeFile(file, settings.utf8)
                daemon = try Story.serve(folder.file("cache"), ["--config", file])
            }

            func reload(_ settings: String) throws {
                let count = daemon.standardError.components("configuration reloaded")
                try writeFile(file, settings.utf8)
                daemon.kill(SIGHUP)
                #expect(
                    eventually {
                        daemon.standardError.components("configuration reloaded") > count
                    })
            }

            func figure(_ name: String) throws -> Int {
                let lines = try player.get("/metrics").text.split(separator: "\n")
                let line = try #require(lines.first { $0.hasPrefix(name + " ") })
                return try #require(Int(line.dropFirst(name.count + 1)))
            }
        }

        @Test func `a cluster key that takes a restart is not listed as in force`() throws {
            let stage = try Stage("{}")
            let key = try Cluster.key(stage.folder.file("cluster.key"))
            try stage.reload(#"{"cluster-key": "\#(key)", "cache-size": "9MB"}"#)
            let settings = try stage.player.get("/api/settings").text
            #expect(settings.contains("9MB"), "\(settings)")
            #expect(!settings.contains("cluster.key"), "\(settings)")
            #expect(stage.daemon.standardError.contains("by a restart only"))
        }

        @Test func `a smaller cache evicts what it had more, and a larger one keeps more`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let stage = try Stage(#"{"cache-size": "20MB"}"#)
            func play(_ name: String) throws {
                for number in 0..<8 {
                    let url = cdn.url("/bytes/1000000/\(name)\(number).ts")
                    #expect(try stage.player.get("/\(url)").body.count == 1_000_000)
                }
            }
            try play("a")
            #expect(try stage.figure("sluice_stored_bytes") >= 8_000_000)
            try stage.reload(#"{"cache-size": "3MB"}"#)
            #expect(try eventually { try stage.figure("sluice_stored_bytes") <= 3_000_000 })
            #expect(try stage.figure("sluice_store_budget_bytes") == 3_000_000)
            try stage.reload(#"{"cache-size": "30MB"}"#)
            try play("b")
            #expect(try eventually { try stage.figure("sluice_stored_bytes") >= 8_000_000 })
            #expect(!stage.daemon.standardError.contains("need a restart"))
        }

        @Test func `a paused player keeps no connection to the origin while the disk is short`()
            throws
        {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let stage = try Stage(#"{"min-free": 0}"#)
            let film = segment("short", 40_000_000)
            cdn.setBehaviour("cc=no-store", for: film)
            cdn.hold(film, afterBytes: 500_000)
            let (stream, begin) = try open(film, of: cdn, stage, receiveBuffer: 64 << 10)
            // The disk is short only after the body has got its file.
            try stage.reload(#"{"min-free": "1000TB"}"#)
            cdn.release(film)
            #expect(eventually { cdn.bytesSent(film) > 8 << 20 })
            #expect(eventually(within: .seconds(30)) { cdn.activeRequests == 0 })
            #expect(cdn.bytesSent(film) < 40_000_000)
            try stage.reload(#"{"min-free": 0}"#)
            #expect(isContent(begin + (try stream.readRest()), of: film))
        }

        @Test func `a slow player holds up no fast one while the disk is short`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let stage = try Stage(#"{"min-free": 0}"#)
            let film = segment("short", 40_000_000)
            cdn.setBehaviour("cc=no-store", for: film)
            cdn.hold(film, afterBytes: 500_000)
            let (slow, begin) = try open(film, of: cdn, stage, receiveBuffer: 64 << 10)
            let (fast, first) = try open(film, of: cdn, stage, receiveBuffer: nil)
            #expect(cdn.requestCount(film) == 1)
            try stage.reload(#"{"min-free": "1000TB"}"#)
            cdn.release(film)
            #expect(isContent(first + (try fast.readRest()), of: film))
            #expect(isContent(begin + (try slow.readRest()), of: film))
            #expect(cdn.requestCount(film) >= 2)
        }

        private func open(
            _ film: String, of cdn: FixtureCDN, _ stage: Stage, receiveBuffer: Int32?
        ) throws -> (stream: PlayerStream, begin: [UInt8]) {
            let player = stage.player
            player.receiveBuffer = receiveBuffer
            let stream = try player.open("/\(cdn.url(film))")
            return (stream, try stream.read(100_000))
        }

        @Test func `nothing is stored while less than min-free is free, as reloaded`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let stage = try Stage(#"{"min-free": 0}"#)
            func stored(_ name: String) throws -> Bool {
                let url = cdn.url("/bytes/1000/\(name).ts")
                for _ in 0..<2 { #expect(try stage.player.get("/\(url)").status == 200) }
                return cdn.requests.count { $0.target.hasSuffix("\(name).ts") } == 1
            }
            #expect(try stored("a"))
            try stage.reload(#"{"min-free": "1000TB"}"#)
            #expect(try !stored("b"))
            try stage.reload(#"{"min-free": 0}"#)
            #expect(try eventually { try stored("c\(cdn.requests.count)") })
        }

        @Test func `the named origins change, and a new mount names its host`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let limited = #""only-origin": ["other.example"]"#
            let stage = try Stage("{\(limited)}")
            func status(_ name: String) throws -> Int {
                try stage.player.get("/\(cdn.url("/bytes/1000/\(name).ts"))").status
            }
            #expect(try status("a") == 403)
            try stage.reload(#"{"only-origin": ["127.0.0.1"]}"#)
            #expect(try status("b") == 200)
            try stage.reload("{\(limited)}")
            // What is stored is not fetched.
            #expect(try status("b") == 200 && status("c") == 403)
            try stage.reload("{\(limited), \"mount\": [\"/demo/=\(cdn.url("/"))\"]}")
            #expect(try status("d") == 200)
            try stage.reload("{}")
            #expect(try status("e") == 200)
            #expect(!stage.daemon.standardError.contains("need a restart"))
        }

        @Test func `a pipe in the file's place is an error, and the next file is read`() throws {
            let stage = try Stage("{}")
            #expect(unlink(stage.file) == 0 && mkfifo(stage.file, 0o600) == 0)
            stage.daemon.kill(SIGHUP)
            #expect(
                eventually { stage.daemon.standardError.contains("is a pipe, not a file") })
            #expect(unlink(stage.file) == 0)
            try stage.reload("{}")
        }

        @Test func `the kept head of an origin changes for lists that are in memory`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            cdn.put("/vod/l.m3u8", text: vod((0..<4).map { "s\($0).ts" }))
            let stage = try Stage("{}")
            let player = stage.player
            func unkept() throws -> Int {
                // A head that comes again is answered from what was kept for it.
                let texts = try (0..<3).map { _ in
                    try player.get("/\(cdn.url("/vod/l.m3u8"))").text
                }
                #expect(Set(texts).count == 1 && uriLines(texts[0]).count == 4)
                return uriLines(texts[0]).count { $0.contains("keep=0") }
            }
            #expect(try unkept() == 0)
            try stage.reload(#"{"origin-keep-head": ["127.0.0.1=1"]}"#)
            #expect(try unkept() == 3)
            try stage.reload(#"{"origin-keep-head": ["127.0.0.1=3"]}"#)
            #expect(try unkept() == 1)
            try stage.reload("{}")
            #expect(try unkept() == 0)
        }

        @Test func `the limit of a host changes by a restart, as the log says`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            cdn.put("/vod/a.ts", Array("bytes".utf8))
            let stage = try Stage(#"{"origins": {"127.0.0.*": {"limit": 2}}}"#)
            _ = try stage.player.get("/" + cdn.url("/vod/a.ts"))
            try stage.reload(#"{"origin-limit": ["127.0.0.*=3"]}"#)
            let origins = try stage.player.get("/api/origins").text
            #expect(origins.contains("\"connection_limit\":2"), "\(origins)")
            #expect(
                eventually {
                    stage.daemon.standardError.contains("need a restart: origin-limit")
                })
        }

        @Test func `the log level changes at once`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            cdn.put("/vod/a.ts", Array("bytes".utf8))
            let stage = try Stage("{}")
            let url = "/" + cdn.url("/vod/a.ts")
            _ = try stage.player.get(url)
            #expect(!stage.daemon.standardError.contains(" debug "))
            try stage.reload(#"{"log-level": "debug"}"#)
            _ = try stage.player.get(url)
            #expect(eventually { stage.daemon.standardError.contains(" debug ") })
        }

        @Test func `quiet hours stop downloads from now on, and end with the next reload`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            cdn.put("/vod/l.m3u8", text: vod(["a.ts"]))
            cdn.put("/vod/a.ts", Array("bytes".utf8))
            let stage = try Stage("{}")
            // The whole day but a minute, whatever the time is.
            try stage.reload(#"{"quiet-hours": "00:00-23:59"}"#)
            let order = "/api/downloads?url=\(cdn.url("/vod/l.m3u8"))"
            #expect(try stage.player.get(order, method: "POST").status / 100 == 2)
            #expect(
                try eventually {
                    try stage.player.get("/api/downloads").text.contains("quiet hours")
                })
            try stage.reload("{}")
            #expect(
                try eventually {
                    try stage.player.get("/api/downloads").text.contains(#""state":"complete""#)
                })
        }
    }
}

extension String {
    /// The number of places where a text occurs.
    fileprivate func components(_ text: String) -> Int { ranges(of: text).count }
}
