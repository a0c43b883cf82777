// Texts that real CDNs send and nobody expects: numbers at their limits, pages in place of playlists,
// steering manifests and asset lists.
import Glibc

/// Playlists with numbers of any size, JSON that playlists name, and those who read them.
final class OddTexts: Addition {
    private let region: OddRegion

    required init(_ stage: Stage) {
        region = OddRegion(stage.world)
        stage.cdn.regions.append(region)
        super.init(stage)
    }

    override func beginRough(until end: Int64) -> [Player] {
        [OddReader(left: random.number(5...25), stage.checks)]
    }

    override func beginCalm() -> [Player] {
        let checks = stage.checks
        var players: [Player] = [
            OddReader(left: 25, checks),
            SteeredViewer(checks),
            PageViewer(region, checks),
        ]
        for player in players { world.after(45 * World.second) { player.start() } }
        if random.chance(30) {
            stage.cdn.add(Self.long)
            let reader = LongReader(Self.long, checks)
            world.after(60 * World.second) { reader.start() }
            players.append(reader)
        }
        let viewer = WholeFilm(OddRegion.film, checks)
        world.after(90 * World.second) { viewer.start() }
        return players + [viewer]
    }

    /// A playlist of about two megabytes.
    private static let long = Film(name: "long", variants: 1, segments: 24_000)

    override func beginOffline() -> [Player] {
        [WholeFilm(OddRegion.film, stage.checks)]
    }
}

/// The texts of an `OddTexts`.
final class OddRegion: Region {
    private let world: World
    private var random: Seeded
    private var files: [String: OriginFile] = [:]
    /// Whether the page is sent in place of the playlist.
    var showsPage = false

    static let film = Film(name: "odd/film", variants: 2, segments: 3)

    init(_ world: World) {
        self.world = world
        random = world.fork()
    }

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/odd/"), path.hasSuffix(".ts") else { return nil }
        if let known = files[path] { return known }
        var own = Seeded(Seeded.hash(path))
        let made = OriginFile(
            path, size: own.number(1...30_000), validator: own.pick([.strong, .none]))
        files[path] = made
        return made
    }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        let path = head.pathOnly
        guard path.hasPrefix("/odd/") else { return nil }
        if let file = file(path) {
            var answer = cdn.answer(file, head)
            if path.contains("numbers") { answer.fields += numberedFields() }
            return answer
        }
        if path == Self.film.master, showsPage { return page(cdn) }
        if let text = Self.film.text(path) { return list(text, cdn) }
        if path == "/odd/steered.m3u8" { return list(Self.steered, cdn) }
        if path.hasSuffix(".json") { return json(path, cdn) }
        guard path.hasSuffix(".m3u8") else { return nil }
        // A second reading of the same name is another text.
        let text = oddList(path)
        return list(text, cdn)
    }

    private func list(_ text: String, _ cdn: SimulatedCDN) -> OriginAnswer {
        .list(after: cdn.latency, rate: cdn.weather.rate, control: "max-age=2") { text }
    }

    /// What a portal or a failing cache sends with a status of success.
    private func page(_ cdn: SimulatedCDN) -> OriginAnswer {
        var answer = OriginAnswer(status: 200)
        answer.fields = [("Content-Type", "text/html")]
        answer.body = Array("<!DOCTYPE html><html><body>Please sign in</body></html>".utf8)
        answer.delay = cdn.latency
        return answer
    }

    // MARK: JSON

    private static let steered =
        "#EXTM3U\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"steer.json\",PATHWAY-ID=\"a\"\n"
        + "#EXT-X-STREAM-INF:BANDWIDTH=400000,PATHWAY-ID=\"a\",STABLE-VARIANT-ID=\"low\"\nfilm/v0/list.m3u8\n"

    private func json(_ path: String, _ cdn: SimulatedCDN) -> OriginAnswer {
        var answer = OriginAnswer(status: 200)
        answer.fields = [("Content-Type", "application/json")]
        answer.delay = cdn.latency
        let text =
            path.contains("steer")
            ? "{\"VERSION\":1,\"TTL\":\(random.pick(Self.numbers)),\"RELOAD-URI\":\"steer.json\",\"PATHWAY-PRIORITY\":[\"b\",\"a\"],"
                + "\"PATHWAY-CLONES\":[{\"BASE-ID\":\"a\",\"ID\":\"b\",\"URI-REPLACEMENT\":{\"HOST\":\"10.1.0.2\"}}]}"
            : "{\"ASSETS\":[{\"URI\":\"film/v0/list.m3u8\",\"DURATION\":\(random.pick(Self.numbers))}]}"
        answer.body = Array((random.chance(10) ? String(text.dropLast(20)) : text).utf8)
        return answer
    }

    // MARK: Numbers

    private static let numbers = [
        "0", "1", "4", "6.006", "-1", "2147483648", "9007199254740991", "9007199254740993",
        "9223372036854775807", "9223372036854775808", "18446744073709551615",
        "99999999999999999999999999", "0.0000000001", "1e308", "NaN", "inf", "", "4294967296",
        "9223372036", "12297829382473034411",
    ]

    private func number(_ usual: String) -> String {
        random.chance(35) ? random.pick(Self.numbers) : usual
    }

    private func numberedFields() -> [(String, String)] {
        [
            ("Age", number("1")),
            ("Cache-Control", "max-age=\(number("5")), s-maxage=\(number("5"))"),
            ("Retry-After", number("1")), ("Expires", number("0")),
        ]
    }

    /// A playlist whose numbers may have any value.
    private func oddList(_ path: String) -> String {
        let isLive = random.chance(60)
        var text = "#EXTM3U\n#EXT-X-VERSION:\(number("9"))\n#EXT-X-TARGETDURATION:\(number("4"))\n"
        let sequence = number("\(world.now / (4 * World.second))")
        text += "#EXT-X-MEDIA-SEQUENCE:\(sequence)\n"
        if random.chance(40) { text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(number("3"))\n" }
        if random.chance(40) {
            text +=
                "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=\(number("1.5")),CAN-SKIP-UNTIL=\(number("24")),HOLD-BACK=\(number("12"))\n"
                + "#EXT-X-PART-INF:PART-TARGET=\(number("0.5"))\n"
        }
        if random.chance(20) { text += "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(number("2"))\n" }
        if random.chance(20) { text += "#EXT-X-START:TIME-OFFSET=\(number("-8"))\n" }
        if random.chance(30) {
            text += "#EXT-X-MAP:URI=\"init.ts\",BYTERANGE=\"\(number("20"))@\(number("0"))\"\n"
        }
        for index in 0..<random.number(1...6) {
            if random.chance(30) {
                text +=
                    "#EXT-X-PROGRAM-DATE-TIME:\(random.pick(["2027-01-15T08:00:00Z", "9999-12-31T23:59:60Z", "0000-00-00T00:00:00Z", "292277026596-01-01T00:00:00Z"]))\n"
            }
            if random.chance(30) {
                text +=
                    "#EXT-X-DATERANGE:ID=\"\(index)\",START-DATE=\"2027-01-15T08:00:00Z\",DURATION=\(number("4")),X-ASSET-LIST=\"assets.json\",X-RESUME-OFFSET=\(number("0"))\n"
            }
            if random.chance(20) {
                text +=
                    "#EXT-X-PART:DURATION=\(number("0.5")),URI=\"p\(index).ts\",BYTERANGE=\"\(number("10"))@\(number("0"))\"\n"
            }
            if random.chance(15) { text += "#EXT-X-BITRATE:\(number("400"))\n" }
            if random.chance(20) { text += "#EXT-X-DISCONTINUITY\n" }
            if random.chance(30) { text += "#EXT-X-BYTERANGE:\(number("100"))@\(number("10"))\n" }
            text +=
                "#EXTINF:\(number("4")),\n\(path.dropFirst(5).prefix { $0 != "." })-\(index).ts\n"
        }
        if random.chance(20) {
            text +=
                "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p9.ts\",BYTERANGE-START=\(number("0")),BYTERANGE-LENGTH=\(number("9"))\n"
        }
        if random.chance(20) {
            text +=
                "#EXT-X-RENDITION-REPORT:URI=\"other.m3u8\",LAST-MSN=\(number("9")),LAST-PART=\(number("1"))\n"
        }
        return text + (isLive ? "" : "#EXT-X-ENDLIST\n")
    }
}
