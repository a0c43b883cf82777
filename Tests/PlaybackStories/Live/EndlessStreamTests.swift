import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Live streams that are one endless body: one connection to the origin, many viewers.
extension Stories {
    @Suite(.tags(.crowded)) struct EndlessStreamTests {
        static let channel = "/live/user/secret/7"

        /// What is on the air: 12 seconds of real media, again and again.
        static let media: [UInt8] = (0..<6).flatMap { (number: Int) -> [UInt8] in
            (try? readFile(Fixture.repository + "/Fixtures/media/ts/360p/seg00\(number).ts")) ?? []
        }

        static func settings() -> EndlessStream.Settings {
            EndlessStream.Settings(rate: media.count / 12, burst: media.count / 12)
        }

        /// A story with a channel, and a first viewer for whom it was found to be live.
        struct OnAir {
            let story: Story
            let stream: EndlessStream
            let first: PlayerStream

            init(_ arguments: [String] = []) throws {
                story = try Story(arguments)
                stream = story.cdn.endless(
                    channel, EndlessStream(media, settings: EndlessStreamTests.settings()))
                first = try story.open(channel)
                _ = try first.readHead()
                // On a busy machine only a later look at the speed may show it.
                let found = try story.settled("live_streams_total", within: .seconds(30)) {
                    $0 == 1
                }
                #expect(found == 1)
            }

            /// Lets the first viewer leave, with whom the stream ends.
            func end() {
                first.abort()
                #expect(eventually { stream.openConnections == 0 })
            }
        }

        @Test func `a late viewer starts with the tables and a key frame`() throws {
            let air = try OnAir()
            let (story, stream) = (air.story, air.stream)
            let late = try story.open(Self.channel)
            let head = try late.readHead()
            #expect(head.status == 200 && head["Content-Type"] == "video/mp2t")
            #expect(head["Cache-Control"] == "no-store" && head["Accept-Ranges"] == "none")
            #expect(head["Cache-Status"]?.contains("detail=joined-live") == true)
            #expect(head["Content-Length"] == nil)
            let start = try late.read(60_000)
            #expect(TransportStart(start).problem == nil)
            #expect(stream.openConnections == 1)
            #expect(story.cdn.requestCount(Self.channel) == 1)
            late.abort()
            air.end()
        }

        @Test func `ten viewers share one connection, and the last one ends it`() throws {
            let air = try OnAir()
            let (story, stream, first) = (air.story, air.stream, air.first)
            let late = try (0..<9).map { _ in try story.open(Self.channel) }
            for viewer in late {
                #expect(TransportStart(try viewer.read(30_000)).problem == nil)
            }
            #expect(stream.openConnections == 1)
            #expect(story.cdn.requestCount(Self.channel) == 1)
            let why = try sluice(
                "why", story.cdn.url(Self.channel), "--daemon", story.daemon.baseURL
            ).stdout
            #expect(why.contains("next        joined-live: join the live stream"), "\(why)")
            #expect(why.contains("without an end, transport, arriving for "), "\(why)")
            #expect(why.contains(" s, viewers: 10, "), "\(why)")
            for viewer in late { viewer.abort() }
            #expect(try first.read(60_000).count == 60_000)
            #expect(stream.openConnections == 1)
            #expect(try story.stat("live_streams_joined_total") == 9)
            air.end()
        }

        @Test func `ranges, HEAD and HTTP 1.0 get the edge`() throws {
            let air = try OnAir()
            let story = air.story
            for range in ["bytes=0-", "bytes=0-1", "bytes=5000-9999", "bytes=-500"] {
                let viewer = try story.open(Self.channel, range: range)
                let head = try viewer.readHead()
                #expect(head.status == 200 && head["Content-Range"] == nil, "\(range)")
                #expect(TransportStart(try viewer.read(20_000)).problem == nil, "\(range)")
                viewer.abort()
            }
            let head = try story.get(Self.channel, method: "HEAD")
            #expect(head.status == 200 && head["Accept-Ranges"] == "none" && head.body.isEmpty)
            let old = try story.player().sendRaw(
                "GET /\(story.cdn.url(Self.channel)) HTTP/1.0\r\n\r\n".utf8)
            let answer = try old.readHead()
            #expect(answer.status == 200 && answer["Transfer-Encoding"] == nil)
            #expect(TransportStart(try old.read(20_000)).problem == nil)
            old.abort()
            #expect(story.cdn.requestCount(Self.channel) == 1)
            air.end()
        }

        @Test func `viewers go on when the origin breaks off and comes back`() throws {
            let air = try OnAir()
            let (story, stream) = (air.story, air.stream)
            let late = try story.open(Self.channel)
            var bytes = try late.read(20_000)
            for round in 1...3 {
                stream.breakOff()
                let resumed = try story.settled("live_streams_resumed_total") { $0 == round }
                #expect(resumed == round)
                bytes += try late.read(120_000)
            }
            #expect(late.broken == nil)
            // Every packet is where the next one is expected.
            let isWhole = stride(from: 0, to: bytes.count, by: 188).allSatisfy {
                bytes[$0] == 0x47
            }
            #expect(isWhole && stream.openConnections == 1)
            let next = try story.open(Self.channel)
            #expect(TransportStart(try next.read(20_000)).problem == nil)
            next.abort()
            late.abort()
            air.end()
        }

        @Test func `an origin that stays away ends the body, and another viewer starts anew`()
            throws
        {
            let air = try OnAir()
            let (story, stream, first) = (air.story, air.stream, air.first)
            stream.takeOff()
            _ = try first.readRest()
            #expect(first.broken != nil)
            #expect(try story.get(Self.channel).status == 404)
            stream.takeOff(false)
            let next = try story.open(Self.channel)
            #expect(try next.readHead().status == 200)
            #expect(try next.read(20_000).count == 20_000)
            next.abort()
            air.end()
        }

        @Test func `an end that the origin states ends the body cleanly`() throws {
            let air = try OnAir()
            let (story, stream, first) = (air.story, air.stream, air.first)
            stream.finish()
            _ = try first.readRest()
            #expect(first.broken == nil)
            #expect(story.cdn.requestCount(Self.channel) == 1)
            #expect(storedFiles(story.cacheFolder).isEmpty)
            air.end()
        }

        @Test func `an origin that falls silent is asked again`() throws {
            let air = try OnAir(["--stall-timeout", "1"])
            let (story, stream, first) = (air.story, air.stream, air.first)
            stream.stall()
            let resumed = try story.settled("live_streams_resumed_total") { $0 >= 1 }
            stream.stall(false)
            let bytes = try first.read(100_000)
            #expect(resumed >= 1 && bytes.count == 100_000 && first.broken == nil)
            air.end()
        }

        @Test func `with one connection to the host the next channel does not wait`() throws {
            let other = "/live/user/secret/8"
            let air = try OnAir(["--host-limit", "1"])
            let (story, stream, first) = (air.story, air.stream, air.first)
            let next = story.cdn.endless(
                other, EndlessStream(Self.media, settings: Self.settings()))
            first.abort()
            let second = try story.open(other)
            #expect(try second.readHead().status == 200)
            #expect(try second.read(10_000).count == 10_000)
            #expect(eventually { stream.openConnections == 0 })
            #expect(next.openConnections == 1)
            second.abort()
            air.end()
        }

        @Test func `a recording or a download of it fails, and keeps no connection`() throws {
            let air = try OnAir()
            let (story, stream) = (air.story, air.stream)
            let recorded = RecordedStream(on: story)
            try recorded.record(Self.channel)
            let state = try recorded.told { $0.contains("failed") }
            #expect(state.contains("expected a playlist"), "\(state)")
            let url = percentEncoded(story.cdn.url(Self.channel))
            let text = try story.api("downloads?url=\(url)", method: "POST")
            let id = members("id", in: text).first ?? ""
            let isRefused = try eventually {
                try story.api("downloads/\(id)").contains("without an end")
            }
            #expect(isRefused && eventually { stream.openConnections == 1 })
            air.end()
        }

        @Test func `a file without a length is stored as before`() throws {
            let story = try Story()
            story.cdn.put("/film", Self.media, contentType: "video/mp2t")
            story.cdn.setBehaviour("chunked=1&noetag=1&lastmod=&norange=1", for: "/film")
            let first = try story.get("/film")
            #expect(first.complete && isSame(first.body, Self.media))
            let part = try story.get("/film", range: "bytes=1000-1999")
            #expect(part.status == 206 && isSame(part.body, Array(Self.media[1_000..<2_000])))
            #expect(story.cdn.requestCount("/film") == 1)
            #expect(try story.stat("live_streams_total") == 0)
        }

        @Test func `a second viewer of what may be a live stream is collapsed`() throws {
            let story = try Story()
            var settings = Self.settings()
            // Too slow for its clock: it stays undecided for as long as speeds are compared.
            settings.rate /= 4
            _ = story.cdn.endless(
                Self.channel, EndlessStream(Self.media, settings: settings))
            let viewers = try (0..<2).map { _ in try story.open(Self.channel) }
            let marks = try viewers.map { try $0.readHead()["Cache-Status"] ?? "" }
            #expect(marks.allSatisfy { $0.contains("detail=live") })
            #expect(marks.filter { $0.contains("collapsed") }.count == 1)
            #expect(story.cdn.requestCount(Self.channel) == 1)
            for viewer in viewers { viewer.abort() }
        }

        @Test func `a radio station is shared without its titles`() throws {
            let audio = (0..<6).flatMap { (number: Int) -> [UInt8] in
                (try? readFile(Fixture.repository + "/Fixtures/media/audio/seg00\(number).aac"))
                    ?? []
            }
            var settings = EndlessStream.Settings(rate: 40_000, burst: 20_000)
            settings.contentType = "audio/aac"
            settings.chunked = false
            settings.unit = 1
            settings.titleInterval = 4_000
            settings.fields = [("icy-name", "A station"), ("icy-br", "37")]
            let story = try Story()
            let stream = story.cdn.endless("/radio", EndlessStream(audio, settings: settings))
            let player = story.player()
            let asking = [("Icy-MetaData", "1")]
            let first = try player.open(story.url("/radio"), headers: asking)
            let head = try first.readHead()
            #expect(head["icy-name"] == "A station" && head["icy-metaint"] == nil)
            #expect(try story.settled("live_streams_total") { $0 == 1 } == 1)
            let late = try story.player().open(story.url("/radio"), headers: asking)
            let start = try late.read(4_000)
            #expect(start[0] == 0xFF && start[1] & 0xF6 == 0xF0)
            #expect(stream.openConnections == 1)
            #expect(story.cdn.requests.allSatisfy { $0["Icy-MetaData"] == nil })
            first.abort()
            late.abort()
        }

        @Test func `a channel list leads to the same stream, and is told of in the access log`()
            throws
        {
            let log = try TemporaryFolder()
            let air = try OnAir(["--access-log", log.file("access")])
            let (story, stream) = (air.story, air.stream)
            story.cdn.put(
                "/list.m3u", text: "#EXTM3U\n#EXTINF:-1,Seven\n\(story.cdn.url(Self.channel))\n",
                contentType: "audio/x-mpegurl")
            let list = try story.get("/list.m3u").text
            let link = try #require(list.split(separator: "\n").last)
            let late = try story.player().open(story.daemon.baseURL + String(link))
            #expect(try late.readHead().status == 200)
            _ = try late.read(50_000)
            late.abort()
            #expect(stream.openConnections >= 1)
            let text = {
                String(decoding: (try? readFile(log.file("access"))) ?? [], as: UTF8.self)
            }
            #expect(eventually { text().contains(" live ") || text().contains(" joined-live ") })
            air.end()
        }
    }
}

/// Endless bodies whose speed or room on the disk is measured.
extension Stories {
    @Suite(.tags(.timed)) struct EndlessPaceTests {
        static let channel = EndlessStreamTests.channel

        /// Media whose packets stand between empty ones, so that a second of it has megabytes.
        static func padded(_ times: Int) -> [UInt8] {
            let empty: [UInt8] = [0x47, 0x1F, 0xFF, 0x10] + [UInt8](repeating: 0xFF, count: 184)
            let padding = Array(repeatElement(empty, count: times - 1).joined())
            let media = EndlessStreamTests.media
            return stride(from: 0, to: media.count, by: 188).flatMap { start in
                media[start..<start + 188] + padding
            }
        }

        @Test func `a viewer that stands still is moved to the edge and holds nobody up`() throws {
            let media = Self.padded(100)
            let story = try Story(["--live-window", "5", "--live-window-size", "4MB"])
            let settings = EndlessStream.Settings(rate: media.count / 12)
            let stream = story.cdn.endless(Self.channel, EndlessStream(media, settings: settings))
            let quick = try story.open(Self.channel)
            _ = try quick.readHead()
            let slow = try story.open(Self.channel, receiveBuffer: 65_536)
            var bytes = try slow.read(188 * 100)
            // More than sockets and window hold.
            let passed = try quick.read(24_000_000)
            #expect(passed.count == 24_000_000)
            #expect(try story.stat("live_streams_total") == 1)
            bytes += try slow.read(12_000_000)
            #expect(try story.stat("live_viewers_moved_total") >= 1)
            let isWhole = stride(from: 0, to: bytes.count, by: 188).allSatisfy {
                bytes[$0] == 0x47
            }
            #expect(isWhole && slow.broken == nil && stream.openConnections == 1)
            slow.abort()
            quick.abort()
        }

        @Test func `the disk holds a window, and nothing after a kill`() throws {
            let media = Self.padded(100)
            let story = try Story(["--live-window", "5", "--live-window-size", "4MB"])
            let settings = EndlessStream.Settings(rate: media.count / 12)
            let stream = story.cdn.endless(Self.channel, EndlessStream(media, settings: settings))
            let viewer = try story.open(Self.channel)
            _ = try viewer.read(24_000_000)
            #expect(try story.stat("live_streams_total") == 1)
            #expect(storedFiles(story.cacheFolder).isEmpty)
            var most = 0
            for _ in 0..<10 {
                _ = try viewer.read(1_000_000)
                most = max(most, namelessBytes(story.daemon.pid))
            }
            // The window, the bytes kept behind it and what is not freed yet.
            #expect(most > 0 && most < 10_000_000)
            viewer.abort()
            #expect(eventually { stream.openConnections == 0 })
            let again = try story.open(Self.channel)
            _ = try again.read(12_000_000)
            try story.restart(SIGKILL)
            #expect(storedFiles(story.cacheFolder).isEmpty)
            let next = try story.open(Self.channel)
            #expect(try next.readHead()["Cache-Status"]?.contains("detail=live") == true)
            #expect(try next.read(100_000).count == 100_000)
            next.abort()
        }

        @Test func `a long file without a length stays a file while it is watched`() throws {
            let film = Self.padded(40)
            let story = try Story(["--read-ahead", "1MB"])
            story.cdn.put("/film", film, contentType: "video/mp2t")
            story.cdn.setBehaviour("chunked=1&noetag=1&lastmod=&norange=1", for: "/film")
            let viewer = try story.open("/film", receiveBuffer: 65_536)
            let body = try viewer.readRest(bytesPerSecond: film.count / 12)
            #expect(viewer.broken == nil && isSame(body, film))
            #expect(try story.stat("read_ahead_pauses_total") > 1)
            #expect(try story.stat("live_streams_total") == 0)
        }
    }
}

/// The first packets of a body, read by code of the tests.
struct TransportStart {
    /// What is wrong with them; nil if a decoder can start.
    let problem: String?

    init(_ bytes: [UInt8]) {
        func pid(_ packet: Int) -> Int {
            Int(bytes[packet * 188 + 1] & 0x1F) << 8 | Int(bytes[packet * 188 + 2])
        }
        let count = bytes.count / 188
        guard count > 3, (0..<count).allSatisfy({ bytes[$0 * 188] == 0x47 }) else {
            problem = "no packets"
            return
        }
        guard pid(0) == 0 else {
            problem = "the first packet is of \(pid(0)), not a program association"
            return
        }
        // Pointer, eight bytes of header, number of the program.
        let map = Int(bytes[4 + 1 + 8 + 2] & 0x1F) << 8 | Int(bytes[4 + 1 + 8 + 3])
        guard pid(1) == map else {
            problem = "the second packet is not the program map"
            return
        }
        let third = 2 * 188
        guard bytes[third + 3] & 0x20 != 0, bytes[third + 4] > 0, bytes[third + 5] & 0x40 != 0
        else {
            problem = "the third packet, of \(pid(2)), is no access point"
            return
        }
        problem = nil
    }
}

/// The bytes on disk of a process's open files without a name.
private func namelessBytes(_ pid: Int32) -> Int {
    let folder = "/proc/\(pid)/fd"
    return listFolder(folder).reduce(0) { sum, name in
        var status = stat()
        guard stat("\(folder)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_nlink == 0
        else { return sum }
        return sum + Int(status.st_blocks) * 512
    }
}
