// A live stream whose origin misbehaves: media sequence numbers leap or restart under the same
// names, one rendition freezes while the other continues, and every playlist has new tokens.

/// Video and audio in segments of four seconds.
final class RestlessLive: Region {
    /// The query appended to segment names.
    enum Token { case none, plain, signature }

    private let world: World
    let name: String
    let token: Token
    private let isDated: Bool
    private let first: Int
    private var files: [String: OriginFile] = [:]
    /// By path: the epochs in which the file existed, and its version in each.
    private var epochs: [String: [(epoch: Int, version: Int)]] = [:]
    private(set) var epoch = 0
    /// When the present epoch began.
    private(set) var began: Int64 = 0
    private var leaps: [(at: Int64, count: Int)] = []
    private var frozen: (track: String, at: Int64)?
    private var lists = 0
    /// The start of each segment in seconds, by number.
    private var begins: [Int: Int64] = [:]
    /// When each token was issued.
    private var given: [Int: Int64] = [:]

    static let target: Int64 = 4 * World.second
    static let window = 15
    static let tracks = ["v", "a"]
    /// The lifetime of a token.
    static let tokenLife: Int64 = 30 * World.second

    init(_ world: World, name: String, token: Token, isDated: Bool, first: Int) {
        self.world = world
        self.name = name
        self.token = token
        self.isDated = isDated
        self.first = first
    }

    var master: String { "/\(name)/master.m3u8" }

    func list(_ track: String) -> String { "/\(name)/\(track)/live.m3u8" }

    // MARK: What goes wrong

    func leap(by count: Int) {
        world.note("cdn: \(name) leaps by \(count)")
        leaps.append((world.now, count))
    }

    /// Restarts the numbering: the same names refer to different bytes.
    func restart() {
        // Numbers that have hardly advanced cannot be distinguished from those before.
        guard world.now - began > 40 * World.second else { return }
        epoch += 1
        (began, leaps, frozen, begins) = (world.now, [], nil, [:])
        world.note("cdn: \(name) counts anew, epoch \(epoch)")
        for (path, file) in files.sorted(by: { $0.key < $1.key }) {
            file.change(to: max(1, (file.current.size * 7 + 13) % 90_000), at: world.now)
            epochs[path, default: []].append((epoch, file.current.number))
        }
    }

    func freeze(_ track: String) {
        frozen = frozen ?? (track, world.now)
        world.note("cdn: \(name) freezes \(track)")
    }

    func thaw() {
        frozen = nil
        world.note("cdn: \(name) goes on")
    }

    func isFrozen(_ track: String) -> Bool { frozen?.track == track }

    // MARK: Lists

    /// Returns by how much the numbers had leapt at a time.
    private func leapt(at time: Int64) -> Int {
        leaps.reduce(0) { $0 + ($1.at <= time ? $1.count : 0) }
    }

    func last(_ track: String, at time: Int64) -> Int {
        let now = frozen.map { $0.track == track ? min($0.at, time) : time } ?? time
        return first + leapt(at: time) + Self.window - 1 + Int(max(0, now - began) / Self.target)
    }

    /// Whether the playlist contains a segment now.
    func lists(_ number: Int, in track: String) -> Bool {
        let last = last(track, at: world.now)
        return number <= last && number > last - Self.window
    }

    private func text(_ track: String) -> String {
        let (last, leapt) = (last(track, at: world.now), leapt(at: world.now))
        lists += 1
        given[lists] = world.now
        var text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(last - Self.window + 1)\n"
        for number in last - Self.window + 1...last {
            // A leap does not change the date of a segment that already has one.
            let begin = begins[number] ?? began / World.second + Int64(number - first - leapt) * 4
            begins[number] = begin
            if isDated { text += "#EXT-X-PROGRAM-DATE-TIME:\(Self.date(8 * 3_600 + Int(begin)))\n" }
            text += "#EXTINF:4,/\(name)/\(track)/s\(number).ts#\(epoch)\ns\(number).ts\(suffix)\n"
        }
        return text
    }

    private var suffix: String {
        switch token {
        case .none: ""
        case .plain: "?token=\(lists)"
        case .signature:
            // The format of BunnyCDN: a URL-safe hash and its expiry time.
            "?token=\(String(repeating: "A", count: 43 - "\(lists)".count))\(lists)"
                + "&expires=\(1_800_000_000 + (world.now + Self.tokenLife) / World.second)"
        }
    }

    private static func date(_ seconds: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let time =
            "T\(two(seconds / 3_600 % 24)):\(two(seconds / 60 % 60)):\(two(seconds % 60)).000Z"
        return "2027-01-\(two(15 + seconds / 86_400))" + time
    }

    // MARK: Files and answers

    func file(_ path: String) -> OriginFile? {
        guard path.hasPrefix("/\(name)/"), path.hasSuffix(".ts") else { return nil }
        if let known = files[path] { return known }
        var own = Seeded(Seeded.hash(path))
        let made = OriginFile(
            path, size: own.number(1...90_000), validator: own.pick([.strong, .weak, .none]),
            hasRanges: own.chance(80))
        files[path] = made
        epochs[path] = [(epoch, 1)]
        return made
    }

    /// The epoch of a version of a file.
    func epoch(of version: OriginFile.Version, _ path: String) -> Int {
        epochs[path]?.last { $0.version <= version.number }?.epoch ?? 0
    }

    func answer(_ head: OriginRequest, _ cdn: SimulatedCDN) -> OriginAnswer? {
        let path = head.pathOnly
        if path == master {
            let text =
                "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"one\",DEFAULT=YES,URI=\"a/live.m3u8\"\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=400000,AUDIO=\"a\"\nv/live.m3u8\n"
            return .list(after: cdn.latency, rate: cdn.weather.rate, control: nil) { text }
        }
        for track in Self.tracks where path == list(track) {
            return .list(after: cdn.latency, rate: cdn.weather.rate, control: "max-age=1") {
                [self] in text(track)
            }
        }
        guard let file = file(path) else { return nil }
        guard isAllowed(head) else { return OriginAnswer(status: 403) }
        let words = path.split { "/.".contains($0) }
        guard let number = words.dropLast().last.flatMap({ Int($0.dropFirst()) }) else {
            return nil
        }
        let last = last(String(words[1]), at: world.now)
        guard number <= last, number > last - 2 * Self.window else {
            return OriginAnswer(status: 404)
        }
        return cdn.answer(file, head)
    }

    private func isAllowed(_ head: OriginRequest) -> Bool {
        guard token != .none else { return true }
        guard let text = head.argument("token"), let number = Int(text.drop { $0 == "A" }),
            let time = given[number]
        else { return false }
        return world.now - time <= Self.tokenLife
    }
}

/// Follows one track; requests its newest segment, or an older one much later.
final class RestlessViewer: Player {
    private let live: RestlessLive
    private let track: String
    private let until: Int64
    private var last: (number: Int, epoch: Int, at: Int64)?

    init(
        _ live: RestlessLive, _ track: String, until: Int64, _ checks: Checks
    ) {
        self.live = live
        self.track = track
        self.until = until
        super.init("viewer of \(live.name)/\(track)", checks)
    }

    override func start() {
        fetchList(Self.entry(live.master)) { [weak self] _ in self?.reload() }
    }

    private func reload() {
        guard world.now < until else { return end() }
        let asked = world.now
        fetchList(Self.entry(live.list(track))) { [weak self] list, isOffline in
            guard let self else { return }
            guard !isOffline, let newest = list.segments.last else {
                last = nil
                return world.after(RestlessLive.target) { [weak self] in self?.reload() }
            }
            look(newest, askedAt: asked)
            let isLate = random.chance(15)
            // Late enough for the token to expire, and still within the CDN's window.
            world.after(isLate ? RestlessLive.tokenLife + 5 * World.second : 0) { [weak self] in
                guard let self else { return }
                play(isLate ? random.pick(Array(list.segments.suffix(5))) : newest)
            }
        }
    }

    private static func parts(_ title: String) -> (path: String, epoch: Int) {
        let words = title.split(separator: "#")
        return (
            words.first.map(String.init) ?? "", words.dropFirst().first.flatMap { Int($0) } ?? 0
        )
    }

    private func look(_ newest: PlayerList.Segment, askedAt asked: Int64) {
        let epoch = Self.parts(newest.path).epoch
        if let last, last.at > world.lastPowerCut,
            (epoch, newest.number) < (last.epoch, last.number)
        {
            world.fault(
                .liveForward,
                "\(name): the list ends at \(newest.number) of epoch \(epoch) after \(last.number) of \(last.epoch)"
            )
        }
        last = (newest.number, epoch, world.now)
        guard checks.cdn.isCalm(for: 40 * World.second), !live.isFrozen(track) else { return }
        // A list from before a restart is as old as its bound permits, like any other.
        let known = asked - RestlessLive.target - World.second
        guard epoch == live.epoch || known > live.began else { return }
        let least = live.last(track, at: known)
        if epoch < live.epoch || newest.number < least {
            world.fault(
                .liveFresh,
                "\(name): the list ends at \(newest.number) of epoch \(epoch), the CDN has had \(least)"
            )
        }
    }

    private func play(_ segment: PlayerList.Segment) {
        let (path, epoch) = Self.parts(segment.path)
        let (begin, begun) = (world.now, live.epoch)
        fetch(
            segment.url,
            check: { [weak self] response in
                guard let self else { return true }
                if checks.media(path, .whole, response) {
                    checkEpoch(path, epoch, response)
                    return true
                }
                guard failures > 2 else { return false }
                if checks.cdn.isCalm(for: 60 * World.second), begun == live.epoch,
                    epoch == live.epoch,
                    begin - world.lastPowerCut > 60 * World.second,
                    live.lists(segment.number, in: track)
                {
                    world.fault(
                        .answered,
                        "\(name): \(path) is listed and there, and answered with \(response.status)"
                    )
                }
                return true
            },
            then: { [weak self] _ in
                self?.world.after(RestlessLive.target * 3 / 4) { [weak self] in self?.reload() }
            })
    }

    /// Checks that a URL from a restarted playlist does not lead to bytes from before the restart.
    private func checkEpoch(_ path: String, _ epoch: Int, _ response: PlayerResponse) {
        guard let file = checks.cdn.file(path) else { return }
        let fitting = file.versions.filter {
            $0.size == response.body.count && file.bytes(0..<$0.size, of: $0) == response.body
        }
        if let newest = fitting.last, live.epoch(of: newest, path) < epoch {
            world.fault(
                .bytes,
                "\(name): \(path) of epoch \(epoch) has the bytes of epoch \(live.epoch(of: newest, path))"
            )
        }
    }
}
