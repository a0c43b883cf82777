// Those who read odd texts.

/// Reads texts with odd numbers, twice each, and asks for what they name.
final class OddReader: Orderer {
    private var left: Int

    init(left: Int, _ checks: Checks) {
        self.left = left
        super.init("reader of odd texts", checks)
    }

    override func start() { next() }

    private func next() {
        guard left > 0 else { return end() }
        left -= 1
        let path = "/odd/numbers\(random.number(0...3)).m3u8"
        let target = random.pick([
            Self.entry(path), Self.entry(path), "/dvr=60/\(SimulatedCDN.base)\(path)",
            Self.entry(path)
                + "?_HLS_msn=\(random.pick(["1", "99999999999", "9223372036854775807"]))",
        ])
        read(target) { [weak self] links in
            guard let self else { return }
            follow(links.prefix(3)) { [weak self] in
                guard let self else { return }
                world.after(random.milliseconds(0...5_000)) { [weak self] in
                    guard let self else { return }
                    random.chance(25) ? order(path) : next()
                }
            }
        }
    }

    /// Has the daemon itself read the text.
    private func order(_ path: String) {
        let url = Self.encoded(path)
        let order = random.pick([
            ("GET", "/api/inspect?url=\(url)"), ("GET", "/api/why?url=\(url)"),
            ("POST", "/api/downloads?url=\(url)"), ("POST", "/api/recordings?url=\(url)&for=20"),
        ])
        client.get(order.1, order: order.0 == "GET" ? nil : (order.0, "")) {
            [weak self] response in
            guard let self else { return }
            world.note("\(name): \(order.1.prefix(30)) \(response.status)")
            guard !wasStopped else { return }
            refuseOwnError(of: order.1, response)
            let id = response.member("id")
            guard order.0 == "POST", let id else { return next() }
            let path =
                order.1.contains("downloads") ? "downloads/\(id)/cancel" : "recordings/\(id)/stop"
            later(random.number(1...15)) { [weak self] in
                self?.tell("POST", "/api/\(path)") { [weak self] _ in self?.next() }
            }
        }
    }

    /// Reports an answer 500, unless the disk has just failed.
    private func refuseOwnError(of target: String, _ response: PlayerResponse) {
        guard response.status == 500, world.now - world.lastDiskFault > World.second else { return }
        world.fault(.status, "\(name): \(target): an error of the daemon's own")
    }

    private func read(_ target: String, then: @escaping ([String]) -> Void) {
        guard !wasStopped, !isDone else { return }
        client.get(target) { [weak self] response in
            guard let self else { return }
            world.note(
                "\(name): \(target.suffix(40)) \(response.status) \(response.body.count)"
            )
            world.mark("odd: \(response.status)")
            guard !wasStopped else { return }
            refuseOwnError(of: target, response)
            let text = String(decoding: response.body, as: UTF8.self)
            let isList = response.status == 200 && text.hasPrefix("#EXTM3U")
            let links = text.split(separator: "\n").filter {
                !$0.hasPrefix("#") && $0.hasPrefix("/")
            }
            then(isList ? links.map(String.init) : [])
        }
    }

    private func follow(_ links: ArraySlice<String>, then: @escaping () -> Void) {
        guard let next = links.first else { return then() }
        read(next) { [weak self] _ in self?.follow(links.dropFirst(), then: then) }
    }
}

/// Reads the steering manifest and plays the pathway that it clones.
final class SteeredViewer: Player {
    init(_ checks: Checks) {
        super.init("viewer of a steered stream", checks)
    }

    override func start() {
        fetch(
            Self.entry("/odd/steered.m3u8"), check: { $0.status == 200 && $0.isWhole },
            then: { [weak self] response in
                let text = String(decoding: response.body, as: UTF8.self)
                guard let self,
                    let line = text.split(separator: "\n").first(where: {
                        $0.hasPrefix("#EXT-X-CONTENT-STEERING:")
                    }), let uri = attribute("SERVER-URI", of: line)
                else {
                    self?.world.fault(.status, "a steered stream lost its steering: \(text)")
                    return
                }
                steer(PlayerList.target(uri))
            })
    }

    private func steer(_ target: String) {
        fetch(
            target,
            // A manifest that is cut off is no JSON; the next one may be.
            check: { $0.status == 200 && $0.isWhole && $0.member("BASE-ID") != nil },
            then: { [weak self] response in
                guard let self else { return }
                let text = String(decoding: response.body, as: UTF8.self)
                if text.contains("\"HOST\":\"10.1.0.2\"") {
                    world.fault(.status, "\(name): the manifest leads around the daemon: \(text)")
                }
                end()
            })
    }
}

/// Plays a film whose entry is at times a page of HTML.
final class PageViewer: Player {
    private let region: OddRegion

    init(_ region: OddRegion, _ checks: Checks) {
        self.region = region
        super.init("viewer of a film behind a page", checks)
    }

    override func start() {
        read { [weak self] in
            guard let self else { return }
            region.showsPage = true
            world.after(5 * World.second) { [weak self] in
                guard let self else { return }
                client.get(Self.entry(OddRegion.film.master)) { [weak self] response in
                    guard let self else { return }
                    world.note("\(name): meanwhile \(response.status)")
                    region.showsPage = false
                    world.after(5 * World.second) { [weak self] in
                        self?.read { [weak self] in self?.end() }
                    }
                }
            }
        }
    }

    private func read(then: @escaping () -> Void) {
        fetch(
            Self.entry(OddRegion.film.master),
            check: { response in
                response.status == 200 && response.isWhole
                    && !(PlayerList(response.body)?.variants.isEmpty ?? true)
            }, then: { _ in then() })
    }
}

/// Reads a long playlist and plays a segment from its end.
final class LongReader: Player {
    private let film: Film

    init(_ film: Film, _ checks: Checks) {
        self.film = film
        super.init("reader of a long list", checks)
    }

    override func start() {
        fetchList(Self.entry(film.list(0))) { [weak self] list in
            guard let self, let last = list.segments.last else { return }
            if list.segments.count != film.segments {
                world.fault(.lengths, "\(name): \(list.segments.count) of \(film.segments)")
            }
            fetchWhole(last.path, last.url) { [weak self] in self?.inspect() }
        }
    }

    /// Has the whole list parsed into its model, for the titles and for the rules.
    ///
    /// A small store may have let the list go for the segment: it is read again then.
    private func inspect(readings: Int = 1) {
        let path = film.list(0)
        fetch(
            "/api/inspect?url=\(SimulatedCDN.base)\(path)",
            check: { $0.status == 200 || $0.status == 404 },
            then: { [weak self] response in
                guard let self else { return }
                guard response.status == 404, readings < 3 else { return end() }
                fetchList(Self.entry(path)) { [weak self] _ in
                    self?.inspect(readings: readings + 1)
                }
            })
    }
}
