import FixtureCDN
import ScenarioSupport
import Testing

/// Which transfers to an origin share connections.
extension Stories {
    @Suite(.tags(.timed), .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct OriginConnections {
        /// The connections of a burst of twelve segments, none of which waits for another's end.
        private func burst(http2: Bool) throws -> Set<Substring> {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let paths = (0..<12).map { segment("s\($0)", 9_000) }
            for path in paths { cdn.hold(path) }
            let front = try NginxFront(.proxy(cdn), http2: http2)
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile])
            // All are requested before the first one is answered.
            let opener = Background {
                let areAsked = eventually { cdn.requestCount() == 12 }
                for path in paths { cdn.release(path) }
                return areAsked
            }
            let areWhole = try inParallel(12) { number in
                let path = paths[number]
                return isContent(
                    try story.player().get(story.url(for: front.url(path))).body, of: path)
            }
            #expect(try opener.value())
            #expect(areWhole.allSatisfy { $0 })
            #expect(cdn.peakConcurrentRequests > 1)
            #expect(eventually { front.accessLog.count == 12 })
            return Set(front.accessLog.compactMap(connection))
        }

        @Test func `a burst shares the first connection if the origin speaks HTTP/2`() throws {
            #expect(try burst(http2: true).count <= 2)
        }

        @Test
        func `a playlist does not wait behind segments on their HTTP/2 connection`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile])
            let list = "/list.m3u8"
            cdn.put(
                list, text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n")
            let paths = (0..<2).map { segment("long\($0)", 900_000) }
            let streams = try paths.map { path in
                cdn.hold(path, afterBytes: 100_000)
                let stream = try story.player().open(story.url(for: front.url(path)))
                _ = try stream.readHead()
                return stream
            }
            #expect(try story.player().get(story.url(for: front.url(list))).status == 200)
            for (path, stream) in zip(paths, streams) {
                cdn.release(path)
                #expect(isContent(try stream.readRest(), of: path))
            }
            #expect(eventually { front.accessLog.count == 3 })
            let used = front.accessLog.map { $0.split(separator: " ") }
            let (lists, media) = (used.filter { $0[3] == list }, used.filter { $0[3] != list })
            #expect(lists.allSatisfy { $0[0] == "HTTP/2.0" } && lists.count == 1)
            #expect(Set(lists.map { $0[4] }).isDisjoint(with: media.map { $0[4] }))
        }

        @Test func `a request on a connection whose path has failed goes over another`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let path = try FailingPath(to: front.port)
            defer { path.stop() }
            let story = try Story(["--ca-file", front.caFile])
            @Sendable func play(_ name: String) throws -> Bool {
                let segment = segment(name, 9_000)
                let url = "https://127.0.0.1:\(path.port)\(segment)"
                return isContent(try story.player().get(story.url(for: url)).body, of: segment)
            }
            #expect(try play("a"))
            path.losePackets()
            // Six: as many as share the connection, and none is left to a retry.
            #expect(try inParallel(6) { try play("b\($0)") } == Array(repeating: true, count: 6))
            #expect(try story.stat("origin_connections_lost_total") == 1)
            #expect(try story.stat("origin_retries_total") == 0)
            #expect(try story.stat("origins_down") == 0)
        }

        /// Over HTTP/2, libcurl does not send such a request again by itself.
        @Test func `a request on a connection that its server has just ended is repeated`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn), idleSeconds: 2)
            defer { front.stop() }
            let path = try FailingPath(to: front.port)
            defer { path.stop() }
            let story = try Story(["--ca-file", front.caFile])
            for round in 0..<2 {
                let segment = segment("s\(round)", 9_000)
                let url = "https://127.0.0.1:\(path.port)\(segment)"
                #expect(
                    isContent(try story.player().get(story.url(for: url)).body, of: segment))
                path.delayNextEnd()
                #expect(eventually { path.delayedEnds == round + 1 })
            }
            #expect(try story.stat("origin_retries_total") == 0)
        }

        /// libcurl sends the reset of a connection's last stream with its next request only.
        @Test func `an origin learns at once that nobody wants the rest of a segment`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile])
            let path = segment("film", 40_000_000)
            cdn.setBehaviour(Behaviour(query: "rate=4000000"), for: path)
            let stream = try story.player().open(story.url(for: front.url(path)))
            _ = try stream.readHead()
            stream.abort()
            #expect(eventually { front.accessLog.count == 1 })
            #expect(cdn.bytesSent(path) < 30_000_000)
        }

        @Test func `a burst has a connection each if the origin speaks HTTP/1.1`() throws {
            #expect(try burst(http2: false).count == 12)
        }
    }

    /// Bytes of paused transfers, where no times or bursts are measured.
    @Suite(.tags(.crowded), .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct HeldBytes {
        /// libcurl holds what arrives for a paused transfer, also when that is removed while others
        /// use its connection.
        @Test func `bytes held for a paused player reach no other player`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile, "--read-ahead", "1000000"])
            func pauses() -> Int { (try? story.stat("read_ahead_pauses_total")) ?? 0 }
            func open(_ name: String) throws -> (path: String, stream: PlayerStream) {
                let before = pauses()
                let path = segment(name, 40_000_000)
                let stream = try story.player().open(story.url(for: front.url(path)))
                _ = try stream.readHead()
                #expect(eventually { pauses() > before })
                return (path, stream)
            }
            // Players pause for so long that their transfers end, the first one while the other
            // uses the connection; others get their handles.
            let paused = [try open("a"), try open("b")]
            #expect(eventually(within: .seconds(30)) { !front.accessLog.isEmpty })
            let next = [try open("c"), try open("d")]
            for (path, stream) in next { #expect(isContent(try stream.readRest(), of: path)) }
            #expect(Set(front.accessLog.compactMap(connection)).count == 1)
            for (_, stream) in paused { stream.abort() }
        }

        /// The transfer that resumes it usually gets the handle of the one that failed.
        @Test func `bytes held for a paused transfer that fails are not delivered later`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile, "--read-ahead", "1000000"])
            // Uses the connection meanwhile.
            let other = segment("other", 20_000_000)
            cdn.setBehaviour(Behaviour(query: "rate=4000000"), for: other)
            let reader = Background { try story.player().get(story.url(for: front.url(other))) }
            #expect(eventually { cdn.bytesSent(other) > 0 })
            let path = segment("film", 40_000_000)
            cdn.setBehaviour(Behaviour(query: "reset=9000000&fails=1"), for: path)
            let stream = try story.player().open(story.url(for: front.url(path)))
            _ = try stream.readHead()
            #expect(eventually { cdn.requestCount(path) == 2 })
            #expect(isContent(try stream.readRest(), of: path))
            #expect(isContent(try reader.value().body, of: other))
        }
    }
}

/// The number of the connection in a line of nginx's log.
private func connection(_ line: String) -> Substring? { line.split(separator: " ").last }
