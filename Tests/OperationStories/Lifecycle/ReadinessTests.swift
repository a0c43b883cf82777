import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization
import Testing

/// Stories of a daemon that leaves a load balancer before it closes its port.
extension Stories {
    @Suite(.tags(.timed)) struct ReadinessTests {
        @Test func `a stopping daemon is not ready, and takes players until its delay ends`() throws
        {
            let story = try Story(["--drain-delay", "60"])
            let player = story.player()
            #expect(try player.get("/api/health?ready").status == 200)
            story.daemon.kill(SIGTERM)
            let isLeaving = try eventually {
                try story.player().get("/api/health?ready").status == 503
            }
            #expect(isLeaving)
            #expect(try player.get("/api/health?ready").text == "{\"status\":\"stopping\"}\n")
            #expect(try player.get("/api/health").status == 200)
            // A new connection, and one from before.
            let path = segment("late", 100_000)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(try player.get("/api/health").status == 200)
            story.daemon.kill(SIGTERM)
            #expect(try story.daemon.waitForExit() == .code(0))
        }

        @Test(.enabled(if: access("/usr/sbin/haproxy", X_OK) == 0, "needs haproxy"))
        func `HAProxy that repeats nothing loses no request when one of two daemons stops`() throws
        {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let folder = try TemporaryFolder()
            let nodes = try (0..<2).map {
                try Story.serve(folder.makeFolder("node\($0)"), ["--drain-delay", "5"])
            }
            let probe = FixtureCDN()
            try probe.start()
            let port = probe.port
            probe.stop()
            let servers = nodes.enumerated().map {
                "server node\($0.offset) \($0.element.baseURL.dropFirst(7))"
            }
            let settings = """
                defaults
                    mode http
                    timeout connect 1s
                    timeout client 60s
                    timeout server 60s
                    timeout check 10s
                    retries 0
                listen players
                    bind 127.0.0.1:\(port)
                    balance roundrobin
                    option httpchk
                    http-check send meth GET uri /api/health?ready hdr Host localhost
                    http-check expect status 200
                    default-server check inter 200ms fall 2 rise 1
                    \(servers.joined(separator: "\n    "))

                """
            try writeFile(folder.file("haproxy.cfg"), settings.utf8)
            let balancer = Shared(
                try ChildProcess(["/usr/sbin/haproxy", "-db", "-f", folder.file("haproxy.cfg")]))
            defer { balancer.value.end() }
            let base = "http://127.0.0.1:\(port)"
            let isUp = eventually {
                (try? ScriptedPlayer(base).get("/api/health"))?.status == 200
            }
            try #require(isUp)

            let isOver = Atomic<Bool>(false)
            let answers = Atomic<Int>(0)
            let origin = cdn.url("")
            let load = (0..<4).map { number in
                Background {
                    var failures: [String] = []
                    var count = 0
                    while !isOver.load(ordering: .relaxed) {
                        let path = segment("r\(number)-\(count % 5)", 50_000)
                        let answer = try? ScriptedPlayer(base).get("/\(origin)\(path)")
                        if answer?.status != 200 || answer?.complete != true {
                            failures.append("\(answer?.status ?? 0) after \(count)")
                        }
                        count += 1
                        answers.add(1, ordering: .relaxed)
                    }
                    return failures
                }
            }
            #expect(eventually { answers.load(ordering: .relaxed) > 40 })
            #expect(try nodes[0].terminate(within: .seconds(60)) == .code(0))
            let before = answers.load(ordering: .relaxed)
            #expect(eventually { answers.load(ordering: .relaxed) > before + 40 })
            isOver.store(true, ordering: .relaxed)
            for failures in try load.map({ try $0.value(within: .seconds(30)) }) {
                #expect(failures.isEmpty)
            }
        }
    }
}
