import FixtureCDN
import ScenarioSupport
import Testing

/// Links of playlists whose URLs are too long for players.
extension Stories {
    @Suite(.tags(.crowded)) struct LongURLTests {
        private static let token = (0..<300).map { "\($0 * 7_919)" }.joined()

        private func path(_ film: String, _ number: Int) -> String {
            segment("\(film)\(number)", 100) + "?token=\(Self.token)"
        }

        @Test(.enabled(if: Tool.cCompiler != nil, "faults are made by a library built here"))
        func `every link of two films leads on while the disk is full`() throws {
            let disk = try FullDisk()
            let story = disk.story
            try disk.fill()
            var films: [String: [String]] = [:]
            for film in ["a", "b"] {
                story.cdn.put("/\(film).m3u8", text: vod((0..<1_500).map { path(film, $0) }))
                films[film] = try story.links(in: "/\(film).m3u8")
                #expect(
                    eventually {
                        story.daemon.standardError.contains("cannot save the short names")
                    })
            }
            for (film, links) in films {
                #expect(links.count == 1_500)
                for number in [0, 700, 1_499] where number < links.count {
                    let answer = try story.follow(links[number])
                    #expect(answer.status == 200, "\(film)\(number)")
                    #expect(isContent(answer.body, of: path(film, number)))
                }
            }
            // It needs no table: it outlives the daemon.
            let last = try #require(films["b"]?.last)
            #expect(try sluice("decode", last).stdout == story.cdn.url(path("b", 1_499)) + "\n")
        }
    }
}
