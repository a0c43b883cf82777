// Feeds: a client sends lists of short titles, swipes through them, and plays where it stays.

/// Short titles in a feed, and the one who swipes.
final class WatchedFeed: Addition {
    private let films: [Film]

    required init(_ stage: Stage) {
        var random = stage.world.fork()
        films = (0..<8).map {
            Film(name: "short\($0)", variants: random.number(1...2), segments: random.number(1...3))
        }
        for film in films { stage.cdn.add(film) }
        super.init(stage)
    }

    override func beginRough(until end: Int64) -> [Player] {
        [FeedViewer(films, swipes: random.number(2...20), stage.checks)]
    }

    override func beginCalm() -> [Player] {
        let viewer = FeedViewer(films, swipes: 8, stage.checks)
        world.after(45 * World.second) { viewer.start() }
        return [viewer]
    }

    /// Each neighbour's playlists and first segments, with retries.
    override var allowance: Int { 25 * 40 }
}

/// Swipes through the feed and plays the segments of the items where it stays.
private final class FeedViewer: Orderer {
    private let films: [Film]
    private var left: Int
    private var place = 0

    init(_ films: [Film], swipes: Int, _ checks: Checks) {
        self.films = films
        left = swipes
        super.init("viewer of the feed", checks)
    }

    override func start() { send() }

    private func send() {
        let entries =
            films.map { "\"\(SimulatedCDN.base)\($0.master)\"" }
            // An entry that is no media.
            + ["\"\(SimulatedCDN.base)/none\""]
        let body = "{\"entries\": [\(entries.joined(separator: ", "))], \"index\": \(place)}"
        tell("PUT", "/api/feeds/shorts", body: body) { [weak self] response in
            guard let self else { return }
            guard (200...299).contains(response.status) else { return refuse("a feed", response) }
            watch()
        }
    }

    private func watch() {
        let film = films[place]
        fetchList(Self.entry(film.master)) { [weak self] master in
            guard let self, let variant = master.variants.first else { return }
            fetchList(variant) { [weak self] list in
                guard let self else { return }
                play(list.segments.prefix(random.number(0...3)))
            }
        }
    }

    private func play(_ segments: ArraySlice<PlayerList.Segment>) {
        guard let next = segments.first else {
            return world.after(random.milliseconds(100...6_000)) {
                [weak self] in self?.swipe()
            }
        }
        let abort = random.chance(20) ? random.number(0...50_000) : nil
        fetch(
            next.url, abortAfter: abort,
            check: { [checks, weak self] response in
                checks.media(next.path, .whole, response) || abort != nil
                    || (self?.failures ?? 9) > 3
            },
            then: { [weak self] _ in self?.play(segments.dropFirst()) })
    }

    private func swipe() {
        left -= 1
        guard left > 0 else { return leave() }
        place = random.chance(80) ? (place + 1) % films.count : random.number(0...films.count - 1)
        tell("POST", "/api/feeds/shorts/position?index=\(place)") { [weak self] response in
            guard let self else { return }
            switch response.status {
            case 200...299: watch()
            // It was not committed before a kill, or it waits after two crashes in a row.
            case 404, 409: send()
            default: refuse("a swipe", response)
            }
        }
    }

    private func leave() {
        tell("DELETE", "/api/feeds/shorts") { [weak self] response in
            guard let self else { return }
            guard (200...299).contains(response.status) || response.status == 404 else {
                return refuse("the end of a feed", response)
            }
            end()
        }
    }
}
