// Scenes about flights: wrong ranges, weak conditions, joined flights, preempted look-ahead.

extension QuietScenes {
    /// A 206 with another range than requested is rejected, not passed on at a wrong offset.
    func playOtherRange(_ done: @escaping () -> Void) {
        let file = file(300_000)
        file.script = ScriptedOrigin { [weak file] number, answer in
            guard number == 1, let file else { return }
            answer.body = file.bytes(150_000..<200_000, of: file.current)
            answer.fields.removeAll { $0.0 == "Content-Range" }
            answer.fields.append(("Content-Range", "bytes 150000-199999/300000"))
        }
        ask(file, 100_000..<200_000) { [weak self] response in
            self?.expect(
                response.status == 502, .status,
                "bytes of another place are answered with \(response.status)")
            done()
        }
    }

    /// A player reads from another player's flight and continues past its end.
    func playJoined(_ done: @escaping () -> Void) {
        let file = file(300_000, script: ScriptedOrigin { _, answer in answer.rate = 40_000 })
        var left = 2
        func hear(_ response: PlayerResponse) {
            expect(
                response.status == 206 && response.isWhole, .answered, "it is not answered whole")
            left -= 1
            if left == 0 { done() }
        }
        ask(file, 0..<100_000) { hear($0) }
        world.after(World.second) { [weak self] in
            self?.ask(file, 50_000..<300_000) { hear($0) }
        }
    }

    /// Slow look-ahead never delays a player's requests.
    func playPreempted(_ done: @escaping () -> Void) {
        let film = SlowFilm(name: "slow")
        checks.cdn.regions.append(film)
        fetchList(Self.entry(film.list)) { [weak self] list in
            guard let self, let first = list.segments.first else { return }
            fetchWhole(first.path, first.url) { [weak self] in self?.interrupt(film, 0, done) }
        }
    }

    /// Plays another film, of one segment.
    private func interrupt(_ film: SlowFilm, _ number: Int, _ done: @escaping () -> Void) {
        guard number < 8 else { return done() }
        // By then look-ahead has restarted, and is not yet abandoned like that of a film left
        // behind.
        world.after(World.second) { [weak self] in
            guard let self else { return }
            let asked = world.now
            fetchList(Self.entry(film.urgent(number))) { [weak self] list in
                guard let self, let only = list.segments.first else { return }
                fetchWhole(only.path, only.url) { [weak self] in
                    guard let self else { return }
                    let waited = world.now - asked
                    expect(
                        waited < 3 * World.second / 2, .answered,
                        "a player waits \(waited / World.millisecond) ms behind look-ahead")
                    interrupt(film, number + 1, done)
                }
            }
        }
    }

    /// While slow bodies have every slot, another player is told so once the time for a slot is over.
    func playFullSlots(_ done: @escaping () -> Void) {
        guard slots <= 4 else { return done() }
        var left = slots + 1
        let finish = {
            left -= 1
            if left == 0 { done() }
        }
        for number in 0..<slots {
            ask(slowFile("slow\(number)")) { _ in finish() }
        }
        world.after(2 * World.second) { [weak self] in
            guard let self else { return }
            let asked = world.now
            ask(slowFile("late")) { [weak self] response in
                guard let self else { return }
                let waited = world.now - asked
                expect(
                    response.status >= 500, .answered,
                    "without a slot, a player is answered with \(response.status)")
                expect(
                    waited < Self.slotTimeout + 2 * World.second, .answered,
                    "a player waits \(waited / World.second) s for a slot")
                finish()
            }
        }
    }

    /// The default of `slot-timeout`.
    private static let slotTimeout = 30 * World.second

    /// A file that takes a minute.
    private func slowFile(_ name: String) -> OriginFile {
        let made = OriginFile("/scenes/\(name).ts", size: 240_000, control: "max-age=86400")
        // Fast enough not to count as stalled.
        made.script = ScriptedOrigin { _, answer in answer.rate = 4_000 }
        checks.cdn.add(made)
        return made
    }

    /// A weak tag does not let a player resume a partial body (RFC 9110 section 13.1.5).
    func playWeakCondition(_ done: @escaping () -> Void) {
        let file = file(100_000, .weak)
        askWhole(file) { [weak self] in
            let condition = [("If-Range", file.tag(file.current) ?? "")]
            self?.ask(file, 50_000..<100_000, condition) { [weak self] response in
                self?.expect(
                    response.status == 200, .status,
                    "If-Range with a weak tag is answered with \(response.status)")
                done()
            }
        }
    }
}

/// A film whose segments are slow except the first; and films of one segment without delay.
private final class SlowFilm: Region {
    private let name: String
    private var files: [String: OriginFile] = [:]

    init(name: String) { self.name = name }

    var list: String { "/\(name)/list.m3u8" }

    /// The playlist of one of the films of one segment.
    func urgent(_ number: Int) -> String { "/\(name)/urgent\(number).m3u8" }

    private func isSlow(_ path: String) -> Bool {
        path.hasPrefix("/\(name)/s") && !path.hasSuffix("/s0.ts")
    }

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/\(name)/"), path.hasSuffix(".ts") else { return nil }
        if let known = files[path] { return known }
        let made = OriginFile(path, size: isSlow(path) ? 900_000 : 20_000)
        files[path] = made
        return made
    }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        let path = head.pathOnly
        if path.hasPrefix("/\(name)/"), path.hasSuffix(".m3u8") {
            let segments =
                path == list
                ? (0..<6).map { "s\($0).ts" } : ["u\(path.filter(\.isNumber)).ts"]
            let lines = segments.map { "#EXTINF:4,/\(name)/\($0)\n\($0)\n" }.joined()
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD\n\(lines)#EXT-X-ENDLIST\n"
            return .list(after: cdn.latency, rate: 4_000_000, control: "max-age=60") { text }
        }
        guard let file = file(path) else { return nil }
        var answer = cdn.answer(file, head)
        if isSlow(path) { answer.rate = 15_000 }
        return answer
    }
}
