import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization
import Testing

/// Sockets that a service manager opens and passes on (sd_listen_fds(3)), so that daemons can
/// succeed each other on one port.
extension Stories {
    @Suite(.tags(.timed)) struct HandedSocketTests {
        /// A cache folder, and daemons on it that receive sockets.
        private struct Service {
            let cache: TemporaryFolder
            let sockets: [ListeningSocket]
            let names: String

            init(_ sockets: [ListeningSocket], names: String = "sluice.socket") throws {
                cache = try TemporaryFolder()
                self.sockets = sockets
                self.names = names
            }

            /// The environment of sd_listen_fds(3); the shell becomes the daemon, and so knows its
            /// process ID.
            private var environment: [(name: String, value: String)] {
                [("LISTEN_FDS", "\(sockets.count)"), ("LISTEN_FDNAMES", names)]
            }

            private func command(_ options: [String]) throws -> [String] {
                ["-c", #"LISTEN_PID=$$ exec "$0" "$@""#, try DaemonProcess.builtBinary()]
                    + [
                        "serve", "--allow-private", "--cache-dir", cache.path, "--look-ahead",
                        "off",
                    ]
                    + options
            }

            func start(_ options: [String] = []) throws -> DaemonProcess {
                try DaemonProcess(
                    command(options), binary: "sh", environment: environment,
                    handed: sockets.map(\.descriptor))
            }

            /// Starts a daemon that is expected to reject its sockets.
            func fail(_ options: [String] = []) throws -> (ChildProcess.Exit?, String) {
                let child = try ChildProcess(
                    ["sh"] + command(options), environment: environment,
                    handed: sockets.map(\.descriptor))
                let exit = child.waitForExit(seconds: patience / .seconds(1))
                return (exit, String(decoding: child.standardError, as: UTF8.self))
            }
        }

        @Test func `a handed socket takes the place of bind and port`() throws {
            let socket = try ListeningSocket()
            let daemon = try Service([socket]).start(["--port", "1"])
            #expect(daemon.baseURL == "http://127.0.0.1:\(socket.port)")
            #expect(try ScriptedPlayer(daemon.baseURL).get("/api/health").status == 200)
        }

        /// They are accepted before the daemon's services have started.
        @Test func `requests that wait on a handed socket are answered once a daemon starts`()
            throws
        {
            let socket = try ListeningSocket()
            let service = try Service([socket])
            for round in 0..<5 {
                let waiting = try [
                    "/api/recordings", "/api/downloads", "/api/feeds", "/api/titles", "/api/stats",
                    "/metrics",
                ].map { path in
                    let player = ScriptedPlayer("http://127.0.0.1:\(socket.port)")
                    return (path, player, try player.open(path))
                }
                let daemon = try service.start()
                for (path, _, answer) in waiting {
                    #expect(try answer.readHead().status == 200, "\(path), round \(round)")
                }
                #expect(try daemon.terminate() == .code(0))
            }
        }

        @Test func `the first answer of a daemon has the figures of the former run`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let socket = try ListeningSocket()
            let service = try Service([socket])
            let base = "http://127.0.0.1:\(socket.port)"
            var daemon = try service.start()
            cdn.put("/vod/a.ts", Array(repeating: 7, count: 1000))
            let url = cdn.url("/vod/a.ts")
            #expect(try ScriptedPlayer(base).get("/\(url)").status == 200)
            #expect(try daemon.terminate() == .code(0))
            for round in 0..<5 {
                let player = ScriptedPlayer(base)
                let waiting = try player.open("/api/history")
                daemon = try service.start()
                let text = String(decoding: try waiting.readRest(), as: UTF8.self)
                #expect(text.contains(",1000,1000,1,0,0]"), "round \(round): \(text)")
                #expect(try daemon.terminate() == .code(0))
            }
        }

        @Test func `a feed of the former run is known to the first requests of the next one`()
            throws
        {
            let socket = try ListeningSocket()
            let service = try Service([socket])
            let base = "http://127.0.0.1:\(socket.port)"
            var daemon = try service.start()
            // Long, so that it takes a while to restore.
            let urls = (0..<10_000).map { "\"http://127.0.0.1:1/\($0).m3u8\"" }
            let order = "{\"entries\":[\(urls.joined(separator: ","))]}"
            let made = try ScriptedPlayer(base).get(
                "/api/feeds/f", method: "PUT", body: Array(order.utf8))
            #expect(made.status == 200)
            for (method, rest) in [("POST", "/position?index=9"), ("DELETE", "")] {
                #expect(try daemon.terminate() == .code(0))
                let player = ScriptedPlayer(base)
                let waiting = try player.open("/api/feeds/f\(rest)", method: method)
                daemon = try service.start()
                #expect(try waiting.readHead().status == 200, "\(method)")
            }
            #expect(try ScriptedPlayer(base).get("/api/feeds/f").status == 404)
            #expect(try daemon.terminate() == .code(0))
        }

        @Test func `ten daemons follow each other on one socket, and no player sees an error`()
            throws
        {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let socket = try ListeningSocket()
            let service = try Service([socket])
            let base = "http://127.0.0.1:\(socket.port)"
            let isOver = Atomic<Bool>(false)
            let total = Atomic<Int>(0)
            var daemon = try service.start()
            let origin = cdn.url("")
            let load = (0..<4).map { number in
                Background {
                    var answers = 0
                    while !isOver.load(ordering: .relaxed) {
                        // A connection for each request: no client repeats a first request by
                        // itself.
                        let path = segment("s\(number)-\(answers % 7)", 200_000)
                        let answer = try ScriptedPlayer(base).get("/\(origin)\(path)")
                        guard answer.status == 200, answer.complete,
                            isContent(answer.body, of: path)
                        else { throw ScenarioFailure("\(answer.status) after \(answers) answers") }
                        answers += 1
                        total.add(1, ordering: .relaxed)
                    }
                    return answers
                }
            }
            for _ in 0..<10 {
                let before = total.load(ordering: .relaxed)
                #expect(eventually { total.load(ordering: .relaxed) > before + 8 })
                #expect(try daemon.terminate(within: .seconds(30)) == .code(0))
                daemon = try service.start()
            }
            isOver.store(true, ordering: .relaxed)
            let answers = try load.map { try $0.value(within: .seconds(30)) }
            #expect(answers.allSatisfy { $0 > 10 }, "\(answers)")
            // Objects stored by one daemon are available to the next.
            #expect(cdn.requestCount() == 28)
        }

        @Test func `a socket by the name of tls speaks TLS`() throws {
            let identity = try Identity("127.0.0.1")
            let sockets = [try ListeningSocket(), try ListeningSocket()]
            let service = try Service(sockets, names: "sluice.socket:sluice-tls.socket")
            let daemon = try service.start(identity.options)
            #expect(daemon.baseURL == "http://127.0.0.1:\(sockets[0].port)")
            let secure = "https://127.0.0.1:\(sockets[1].port)"
            #expect(daemon.secureURL == secure)
            let answer = try Tool.run(
                ["curl", "--silent", "--noproxy", "*", "--cacert", identity.authority]
                    + ["--write-out", "%{http_code} %{http_version}", "--output", "/dev/null"]
                    + ["\(secure)/api/health"])
            #expect(answer.stdout == "200 2")
            let (exit, text) = try service.fail()
            #expect(exit == .code(78) && text.contains("needs a tls-cert"))
        }

        @Test func `a TLS port has no effect beside handed sockets, and that is said`() throws {
            let identity = try Identity("127.0.0.1")
            let service = try Service([try ListeningSocket()])
            let (exit, text) = try service.fail(identity.options + ["--tls-port", "9443"])
            #expect(exit == .code(78) && text.contains("enable sluice-tls.socket"))
            // Nor is one asked for where only the certificate is given.
            let (other, advice) = try service.fail(identity.options)
            #expect(other == .code(78) && advice.contains("enable sluice-tls.socket"), "\(advice)")
            #expect(!advice.contains("tls-port"), "\(advice)")
            // Commands that read the same settings know nothing of the sockets.
            let program = try DaemonProcess.builtBinary()
            let check = try Tool.run([program, "check"] + identity.options, within: patience)
            #expect(check.status == 0, "\(check.stderr)")
        }

        @Test func `a handed socket beyond loopback needs a token`() throws {
            let service = try Service([try ListeningSocket(on: "0.0.0.0")])
            let (exit, text) = try service.fail()
            #expect(exit == .code(78) && text.contains("binding beyond loopback"))
            let daemon = try service.start(["--allow-remote"])
            #expect(daemon.isRunning)
        }

        @Test func `a descriptor that is not a listening socket is refused`() throws {
            let child = try ChildProcess(
                [
                    "sh", "-c", #"LISTEN_PID=$$ exec "$0" serve --port 0 3</dev/null"#,
                    try DaemonProcess.builtBinary(),
                ], environment: [("LISTEN_FDS", "1")])
            #expect(child.waitForExit() == .code(78))
            let text = String(decoding: child.standardError, as: UTF8.self)
            #expect(text.contains("not a listening TCP socket"))
        }

        @Test func `sockets for another process are left alone`() throws {
            let folder = try TemporaryFolder()
            let daemon = try DaemonProcess(
                ["serve", "--port", "0", "--cache-dir", folder.path],
                environment: [("LISTEN_FDS", "1"), ("LISTEN_PID", "1")])
            #expect(try ScriptedPlayer(daemon.baseURL).get("/api/health").status == 200)
        }
    }
}
