import FixtureCDN
import ScenarioSupport
import Testing

/// Origins behind TLS and HTTP/2, as a real nginx speaks them.
extension Players {
    @Suite(.enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct TLSOrigin {
        @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"), arguments: [true, false])
        func `a stream from a TLS origin plays like the plain one`(http2: Bool) throws {
            let cdn = try Self.startedCDN()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn), http2: http2)
            defer { front.stop() }
            let stage = try Stage(["--ca-file", front.caFile])
            let direct = try Tool.framemd5(cdn.url(Stream.transportStream.path))
            let url = stage.through(front.url(Stream.transportStream.path))
            let isSame = try Tool.framemd5(url) == direct
            #expect(direct != nil && isSame)
            let version = http2 ? "HTTP/2.0 " : "HTTP/1.1 "
            #expect(!front.accessLog.isEmpty)
            #expect(front.accessLog.allSatisfy { $0.hasPrefix(version) })
        }

        @Test func `many concurrent segments share a connection over HTTP/2`() throws {
            let cdn = try Self.startedCDN()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let stage = try Stage(["--ca-file", front.caFile])
            let base = stage.daemon.baseURL + "/" + front.baseURL
            // Request a playlist first, as every player does: it shows which protocol the origin
            // speaks.
            #expect(try ScriptedPlayer(base).get("\(base)/ts/master.m3u8").status == 200)
            let areWhole = try inParallel(48) { number in
                let size = 20_000 + number
                let answer = try ScriptedPlayer(base).get("\(base)/bytes/\(size)/segment.ts")
                return answer.body == FixtureCDN.syntheticBytes("segment.ts", 0..<size)
            }
            #expect(areWhole.allSatisfy { $0 })
            #expect(eventually { front.accessLog.count == 49 })
            #expect(front.accessLog.allSatisfy { $0.hasPrefix("HTTP/2.0 200 GET ") })
            let connections = Set(front.accessLog.map { $0.split(separator: " ").last })
            #expect(connections.count <= 2)
        }

        @Test func `an untrusted certificate is rejected with a message`() throws {
            let cdn = try Self.startedCDN()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let stage = try Stage()
            let answer = try ScriptedPlayer(stage.daemon.baseURL)
                .get(stage.through(front.url(Stream.transportStream.path)))
            #expect(answer.status == 502)
            #expect(answer.text.contains("TLS"), "\(answer.text)")
            #expect(cdn.requestCount() == 0)
        }

        @Test func `a server without TLS is rejected with a message`() throws {
            let stage = try Stage()
            let origin = try ScriptedOrigin()
            let refusal = Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)
            for _ in 0..<3 { origin.connection(.send(refusal), .close) }
            let answer = try ScriptedPlayer(stage.daemon.baseURL)
                .get(stage.through("https://127.0.0.1:\(origin.port)/master.m3u8"))
            #expect(answer.status == 502)
            #expect(answer.text.contains("TLS"), "\(answer.text)")
        }

        private static func startedCDN() throws -> FixtureCDN {
            let cdn = FixtureCDN(folder: Fixture.path("media"))
            try cdn.start()
            return cdn
        }
    }
}
