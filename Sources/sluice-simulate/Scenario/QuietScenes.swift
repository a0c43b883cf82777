// Scenes in calm weather, for which the requests that the CDN must see are known exactly.

/// Plays the scenes in sequence.
final class QuietScenes: Player {
    /// The scene that is being played.
    private(set) var scene = ""
    private var helpers: [DaemonClient] = []

    /// The names of the scenes to play.
    private let chosen: [String]

    /// - Parameters:
    ///   - checks: the checks applied to responses.
    ///   - keepsAll: whether the store has room for everything.
    ///   - slots: the slots of the daemon.
    ///   - parts: which scenes are played.
    init(_ checks: Checks, keepsAll: Bool, slots: Int, parts: Parts) {
        self.slots = slots
        chosen = Self.names(keepsAll: keepsAll).filter { parts.has($0) }
        super.init("scenes", checks)
    }

    let slots: Int

    private typealias Scene = (name: String, play: (QuietScenes) -> (@escaping () -> Void) -> Void)

    private static var scenes: [Scene] {
        [
            ("shared", playShared), ("stretches", playStretches), ("resumed", playResumed),
            ("refused", playRefused), ("asked-later", playAskedLater), ("moved", playMoved),
            ("crumbs", playCrumbs), ("stalled", playStalled), ("shrunk", playShrunk),
            ("same-weak-tag", playSameTag), ("tail-of-another", playOtherTail),
            ("cut-chunks", playCutChunks), ("left", playLeft), ("another-range", playOtherRange),
            ("joined", playJoined), ("weak-condition", playWeakCondition),
            ("names-again", playNamesAgain), ("clock-set-back", playClockSetBack),
            ("growing", playGrowing), ("mounted", playMounted), ("crowded", playCrowded),
            ("preempted", playPreempted), ("full-slots", playFullSlots),
        ]
    }

    /// The scenes that a run plays: most of them only if the store has room for everything.
    static func names(keepsAll: Bool) -> [String] {
        keepsAll ? scenes.map(\.name).filter { $0 != "crowded" } : ["crowded", "preempted"]
    }

    override func start() {
        play(Self.scenes.filter { chosen.contains($0.name) }[...])
    }

    private func play(_ scenes: ArraySlice<Scene>) {
        guard let next = scenes.first else { return end() }
        scene = next.name
        world.note("scene: \(scene)")
        next.play(self)() { [weak self] in
            self?.world.after(2 * World.second) { [weak self] in self?.play(scenes.dropFirst()) }
        }
    }

    override func stop() {
        super.stop()
        for helper in helpers { helper.leave() }
    }

    // MARK: Parts of scenes

    func file(
        _ size: Int, _ validator: OriginFile.Validator = .strong, isChunked: Bool = false,
        script: ScriptedOrigin = ScriptedOrigin()
    ) -> OriginFile {
        let made = OriginFile(
            "/scenes/\(scene).ts", size: size, validator: validator, isChunked: isChunked,
            control: "max-age=86400")
        made.script = script
        checks.cdn.add(made)
        return made
    }

    /// Sends a request on a new connection and checks the response against the file.
    func ask(
        _ file: OriginFile, _ range: Range<Int>? = nil, _ conditions: [(String, String)] = [],
        abortAfter: Int? = nil,
        then: @escaping (PlayerResponse) -> Void
    ) {
        let helper = makeHelper()
        let asked = Checks.Asked(range)
        helper.get(
            Self.entry(file.path), fields: asked.fields + conditions, abortAfter: abortAfter
        ) { [weak self] response in
            guard let self, !wasStopped else { return }
            world.note(
                "scene \(scene): \(response.status) \(response.body.count)\(response.isWhole ? "" : " broken") "
                    + "\(response.first("cache-status") ?? "")")
            _ = checks.media(file.path, asked, response)
            then(response)
        }
    }

    /// Opens a new connection, or a stream of one.
    func makeHelper() -> DaemonClient {
        let made = world.clients.make()
        helpers.append(made)
        return made
    }

    func askWhole(_ file: OriginFile, then: @escaping () -> Void) {
        ask(file) { [weak self] response in
            self?.expect(
                response.status == 200 && response.isWhole, .answered, "it is not answered whole")
            then()
        }
    }

    func expect(_ holds: Bool, _ oracle: Oracle, _ what: @autoclosure () -> String) {
        if !holds { world.fault(oracle, "scene \(scene): \(what())") }
    }

    func expectRequests(_ file: OriginFile, _ most: Int) {
        expect(
            file.seen.count <= most, .singleFetch,
            "\(file.seen.count) requests where \(most) do: \(file.seen.map { $0.range ?? "whole" })"
        )
    }

    func expectBytes(_ file: OriginFile, _ most: Int) {
        expect(
            file.bytesSent <= most, .singleFetch, "the CDN sent \(file.bytesSent) bytes of \(most)")
    }

    // MARK: Scenes

    /// Three players request the same file at the same time.
    private func playShared(_ done: @escaping () -> Void) {
        let file = file(200_000)
        var left = 3
        for _ in 0..<3 {
            askWhole(file) { [weak self] in
                left -= 1
                guard left == 0 else { return }
                self?.expectRequests(file, 1)
                self?.expectBytes(file, 200_000)
                done()
            }
        }
    }

    /// Only the holes between stored spans are fetched.
    private func playStretches(_ done: @escaping () -> Void) {
        let file = file(900_000)
        ask(file, 200_000..<300_000) { [weak self] _ in
            self?.ask(file, 500_000..<600_000) { [weak self] _ in
                self?.askWhole(file) { [weak self] in
                    self?.expectRequests(file, 5)
                    self?.expectBytes(file, 900_000)
                    done()
                }
            }
        }
    }

    /// A broken body is resumed, conditional on the validator of the received part.
    private func playResumed(_ done: @escaping () -> Void) {
        let file = file(
            400_000,
            script: ScriptedOrigin { number, answer in
                if number == 1 { answer.ending = .cut(after: 150_000) }
            })
        askWhole(file) { [weak self] in
            self?.expectRequests(file, 2)
            self?.expectBytes(file, 400_000)
            if let second = file.seen.dropFirst().first {
                self?.expect(
                    second.ifRange == file.tag(file.current), .bytes,
                    "the rest is asked for without If-Range")
                self?.expect(
                    second.time - file.seen[0].time > 100 * World.millisecond, .budget,
                    "no pause before a resumption")
            }
            done()
        }
    }

    /// A failing origin is retried after increasing pauses.
    private func playRefused(_ done: @escaping () -> Void) {
        let file = file(
            50_000,
            script: ScriptedOrigin { number, answer in
                if number < 3 { answer = OriginAnswer(status: 500) }
            })
        askWhole(file) { [weak self] in
            for (one, next) in zip(file.seen, file.seen.dropFirst()) {
                self?.expect(
                    next.time - one.time >= 100 * World.millisecond, .budget,
                    "asked again \((next.time - one.time) / World.millisecond) ms after a failure")
            }
            done()
        }
    }

    /// Retry-After is obeyed.
    private func playAskedLater(_ done: @escaping () -> Void) {
        let file = file(
            50_000,
            script: ScriptedOrigin { number, answer in
                guard number == 1 else { return }
                answer = OriginAnswer(status: 503)
                answer.fields.append(("Retry-After", "3"))
            })
        askWhole(file) { [weak self] in
            if let second = file.seen.dropFirst().first {
                self?.expect(
                    second.time - file.seen[0].time >= 3 * World.second, .budget,
                    "asked again \((second.time - file.seen[0].time) / World.millisecond) ms after Retry-After: 3"
                )
            }
            done()
        }
    }

    /// The target of a redirect is stored under the requested URL.
    private func playMoved(_ done: @escaping () -> Void) {
        let file = file(50_000)
        let path = file.path
        var isFirst = true
        file.script = ScriptedOrigin { _, answer in
            guard isFirst else { return isFirst = true }
            isFirst = false
            answer = OriginAnswer(status: 302)
            answer.fields.append(("Location", "\(SimulatedCDN.base)\(path)?hop=1"))
        }
        askWhole(file) { [weak self] in
            self?.askWhole(file) { [weak self] in
                self?.expectRequests(file, 2)
                done()
            }
        }
    }

    /// An origin that sends a few bytes per response gets only as many requests as the budget
    /// allows.
    private func playCrumbs(_ done: @escaping () -> Void) {
        let file = file(
            100_000,
            script: ScriptedOrigin { _, answer in
                answer.ending = .cut(after: min(1_000, answer.body.count))
            })
        ask(file) { [weak self] _ in
            self?.world.after(60 * World.second) { [weak self] in
                self?.expect(
                    file.seen.count <= 26, .budget,
                    "\(file.seen.count) requests for one of a player")
                done()
            }
        }
    }

    /// A stalled body is detected, even one that was nearly complete.
    private func playStalled(_ done: @escaping () -> Void) {
        let file = file(
            600_000,
            script: ScriptedOrigin { number, answer in
                guard number == 1 else { return }
                answer.rate = 20_000
                answer.ending = .stall(after: 300_000)
            })
        askWhole(file) { [weak self] in
            self?.expectRequests(file, 2)
            done()
        }
    }

    /// An origin that ignores If-Range has a shorter version when the rest is requested.
    private func playShrunk(_ done: @escaping () -> Void) {
        let file = file(100_000, isChunked: true)
        let (now, path) = (world.now, file.path)
        var script = ScriptedOrigin { [checks] number, answer in
            guard number == 1 else { return }
            answer.ending = .cut(after: 60_000)
            checks.cdn.file(path)?.change(to: 30_000, at: now)
        }
        script.ignoresIfRange = true
        file.script = script
        ask(file) { [weak self] _ in self?.ask(file) { _ in done() } }
    }

    /// An origin serves different bytes under the same weak tag.
    private func playSameTag(_ done: @escaping () -> Void) {
        let file = file(300_000, .weak)
        var script = ScriptedOrigin()
        script.ignoresIfRange = true
        script.tag = "W/\"same\""
        file.script = script
        ask(file, 0..<100_000) { [weak self] _ in
            guard let self else { return }
            file.change(to: 300_000, at: world.now)
            ask(file) { _ in done() }
        }
    }

    /// Bytes after a hole belong to another version, which only a comparison of the bytes can show.
    private func playOtherTail(_ done: @escaping () -> Void) {
        let file = file(300_000, .none)
        ask(file, 150_000..<200_000) { [weak self] _ in
            guard let self else { return }
            file.change(to: 300_000, at: world.now)
            ask(file) { _ in done() }
        }
    }

    /// A broken body without a length counts as incomplete, now and later.
    private func playCutChunks(_ done: @escaping () -> Void) {
        let file = file(
            80_000, .none, isChunked: true,
            script: ScriptedOrigin { number, answer in
                if number == 1 { answer.ending = .cut(after: 40_000) }
            })
        ask(file) { [weak self] _ in self?.askWhole(file, then: done) }
    }

    /// The CDN's transfer ends once all players have left.
    private func playLeft(_ done: @escaping () -> Void) {
        let file = file(3_000_000, script: ScriptedOrigin { _, answer in answer.rate = 20_000 })
        ask(file, abortAfter: 10_000) { [weak self] _ in
            self?.world.after(20 * World.second) { [weak self] in
                let sent = file.bytesSent
                self?.world.after(10 * World.second) { [weak self] in
                    self?.expect(
                        file.bytesSent == sent, .returnsToZero,
                        "the CDN sends \(file.bytesSent - sent) bytes although nobody has been there for 20 s"
                    )
                    done()
                }
            }
        }
    }

    /// An object that is being filled and read is not evicted for newer ones.
    ///
    /// With one slot the newer ones wait until it is stored, and may then take its place.
    private func playCrowded(_ done: @escaping () -> Void) {
        let slow = file(300_000, script: ScriptedOrigin { _, answer in answer.rate = 20_000 })
        var isUsed = true
        askWhole(slow) { isUsed = false }
        let names = (0..<12).map { "/scenes/crowd\($0).ts" }
        crowd(names[...]) { [weak self] in
            let wasUsed = isUsed
            self?.askWhole(slow) { [weak self] in
                if wasUsed { self?.expectRequests(slow, 1) }
                done()
            }
        }
    }

    private func crowd(_ names: ArraySlice<String>, then: @escaping () -> Void) {
        guard let name = names.first else { return then() }
        let other = OriginFile(name, size: 150_000)
        checks.cdn.add(other)
        askWhole(other) { [weak self] in
            self?.world.after(World.second) { [weak self] in
                self?.crowd(names.dropFirst(), then: then)
            }
        }
    }
}
