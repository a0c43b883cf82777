import FixtureCDN
import ScenarioSupport
import Testing

/// Request headers as Kodi and VLC write them beside a URL and in channel lists.
extension Stories {
    @Suite(.tags(.crowded)) struct PlayerHeaders {
        private func sent(_ story: Story, _ path: String) -> LoggedRequest? {
            story.cdn.requests.last { $0.path == path }
        }

        @Test func `headers behind the URL reach the playlist and its segments`() throws {
            let story = try Story()
            let path = segment("a", 1_000)
            story.cdn.put(
                "/list.m3u8",
                text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n\(path)\n#EXT-X-ENDLIST\n")
            let suffix = "User-Agent=My%20Player%2F1&Referer=https%3A%2F%2Fsite.test%2F&seekable=0"
            for bar in ["|", "%7C"] {
                let text = try story.get("/list.m3u8\(bar)\(suffix)").text
                let link = try #require(text.split(separator: "\n").first { !$0.hasPrefix("#") })
                let answer = try story.player().get(String(link))
                #expect(isContent(answer.body, of: path))
            }
            for path in ["/list.m3u8", path] {
                let request = try #require(sent(story, path))
                #expect(request["User-Agent"] == "My Player/1")
                #expect(request["Referer"] == "https://site.test/" && request["seekable"] == nil)
            }
        }

        @Test func `commands take the headers behind the URL for the session's, as requests do`()
            throws
        {
            let story = try Story()
            let daemon = story.daemon.baseURL
            story.cdn.put("/list.m3u8", text: vod([segment("a", 1_000)]))
            let url = story.cdn.url("/list.m3u8") + "|User-Agent=Kodi&Authorization=Basic%20eA"
            // The session differs from the one without headers, and so does its playlist.
            #expect(try story.player().get("\(daemon)/\(url)").status == 200)
            let plain = try sluice("why", story.cdn.url("/list.m3u8"), "--daemon", daemon)
            #expect(plain.status == 0 && plain.stdout.contains("stored      no"), "\(plain.stdout)")
            for asked in [url, "\(daemon)/\(url)"] {
                let why = try sluice("why", asked, "--daemon", daemon)
                #expect(why.status == 0, "\(why.stderr)")
                #expect(why.stdout.contains("stored      whole"), "\(why.stdout)")
                #expect(!why.stdout.contains("Kodi") && !why.stdout.contains("eA"))
            }
            let pin = try sluice("pin", url, "--daemon", daemon)
            #expect(pin.status == 0 && pin.stdout.contains("list"), "\(pin.stdout)\(pin.stderr)")
            #expect(try sluice("unpin", url, "--daemon", daemon).stdout == "unpinned\n")
            let inspect = try sluice("inspect", url)
            #expect(inspect.status == 0, "\(inspect.stdout)")
            #expect(sent(story, "/list.m3u8")?["User-Agent"] == "Kodi")
            #expect(
                try sluice("purge", url, "--daemon", daemon).stdout.hasPrefix("removed 1 object"))
            for command in ["why", "pin", "purge"] {
                let bad = try sluice(
                    command, story.cdn.url("/list.m3u8|Host=other"), "--daemon", daemon)
                #expect(bad.status != 0, "\(command): \(bad.stdout)")
            }
        }

        @Test func `headers that the daemon sets itself are refused`() throws {
            let story = try Story()
            for header in ["Host=other.test", "Content-Length=3", "X-A=b%0D%0AX-C:%20d"] {
                let answer = try story.get("/a.ts|\(header)")
                #expect(answer.status == 400, "\(header)")
                #expect(!answer.text.contains("other.test"))
            }
            #expect(story.cdn.requestCount() == 0)
        }

        @Test func `a bar not followed by headers belongs to the URL`() throws {
            let story = try Story()
            _ = try story.get("/a.ts?q=1%7Cb=c")
            _ = try story.get("/a.ts?q=1|2")
            #expect(story.cdn.requests.map(\.path).allSatisfy { $0.hasPrefix("/a.ts") })
            #expect(story.cdn.requestCount() == 2)
        }

        @Test func `entries of a channel list get the headers given with them`() throws {
            let story = try Story()
            let paths = (0..<5).map { "/channel\($0).m3u8" }
            for path in paths {
                story.cdn.put(
                    path,
                    text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n")
            }
            let urls = paths.map { story.cdn.url($0) }
            story.cdn.put(
                "/channels.m3u",
                text: """
                    #EXTM3U
                    #EXTINF:-1 tvg-id="a",Zero
                    \(urls[0])|User-Agent=Kodi%2F20
                    #EXTINF:-1,One
                    #EXTVLCOPT:http-user-agent=VLC/3 (x y)
                    #EXTVLCOPT:http-referrer=https://one.test/
                    \(urls[1])
                    #EXTINF:-1,Two
                    #KODIPROP:inputstream.adaptive.stream_headers=X-Key=a%20b&Host=evil.test
                    \(urls[2])
                    #EXTINF:-1,Three
                    \(urls[3])
                    #EXTVLCOPT:network-caching=1000
                    #EXTINF:-1,Four
                    \(urls[4])

                    """)
            let list = try story.player().get(
                story.daemon.baseURL + "/proxy?url=\(story.cdn.url("/channels.m3u"))&h_X-List=1")
            let links = list.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(
                String.init)
            #expect(links.count == 5)
            for link in links { #expect(try story.player().get(link).status == 200) }
            let requests = paths.map { sent(story, $0) }
            let agents = requests.map { $0?["User-Agent"] ?? "" }
            #expect(agents[0] == "Kodi/20" && agents[1] == "VLC/3 (x y)")
            #expect(agents[2...].allSatisfy { $0.hasPrefix("sluice/") }, "\(agents)")
            #expect(requests.map { $0?["Referer"] } == [nil, "https://one.test/", nil, nil, nil])
            #expect(requests.map { $0?["X-Key"] } == [nil, nil, "a b", nil, nil])
            #expect(requests.allSatisfy { $0?["X-List"] == "1" && $0?["Host"] != "evil.test" })
        }

        @Test func `no header value appears in a log`() throws {
            let folder = try TemporaryFolder()
            let log = folder.path + "/access.log"
            let story = try Story(["--access-log", log, "--log-level", "debug"])
            for header in ["Authorization=hidden-word", "Host=hidden-word"] {
                _ = try story.get("/a.ts|\(header)")
            }
            #expect(
                eventually {
                    String(decoding: (try? readFile(log)) ?? [], as: UTF8.self).contains("/a.ts")
                })
            let text = String(decoding: try readFile(log), as: UTF8.self)
            #expect(!text.contains("hidden-word"))
            #expect(!story.daemon.standardError.contains("hidden-word"))
        }

        @Test func `the command prints a link with the headers`() throws {
            let run = try Tool.run([
                try DaemonProcess.builtBinary(), "url", "http://h.test/a.m3u8|User-Agent=A%20B",
            ])
            #expect(
                run.stdout.contains("/proxy?url=http%3A%2F%2Fh.test%2Fa.m3u8&h_User-Agent=A%20B"))
            let refused = try Tool.run([
                try DaemonProcess.builtBinary(), "url", "http://h.test/a.m3u8|Host=x",
            ])
            #expect(refused.status != 0 && refused.stderr.contains("set by the daemon itself"))
        }
    }
}
