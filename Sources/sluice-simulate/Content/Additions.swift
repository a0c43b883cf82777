// Users of the daemon's other services, which a seed may add, with the content that they use.
import Glibc

/// What an addition works with.
struct Stage {
    let checks: Checks
    let daemon: SimulatedDaemon
    var world: World { checks.world }
    var cdn: SimulatedCDN { checks.cdn }
}

/// Users of one service and their content, in all phases of a run.
class Addition {
    let stage: Stage
    var random: Seeded
    var world: World { stage.world }

    required init(_ stage: Stage) {
        self.stage = stage
        random = stage.world.fork()
    }

    /// Returns the players for the rough phase; each is started at a random time.
    func beginRough(until end: Int64) -> [Player] { [] }
    /// Returns the players after the faults; each must reach its end.
    func beginCalm() -> [Player] { [] }
    /// Returns the players while the CDN is unreachable; each must reach its end.
    func beginOffline() -> [Player] { [] }
    /// The number of requests to the CDN that no player's request accounts for.
    var allowance: Int { 0 }
    /// How long the daemon may go on with it after the last player.
    var aftermath: Int64 { 0 }
}

/// The kinds of additions; their names are names of parts.
enum AdditionKind: String, CaseIterable {
    case downloads, recordings, feeds, askers
    case timeShift = "time-shift"
    case oddTexts = "odd-texts"
    case varied

    /// True if it makes no sense in a store that evicts what it needs.
    private var needsRoom: Bool { ![.askers, .oddTexts, .varied].contains(self) }

    private var type: Addition.Type {
        switch self {
        case .downloads: OrderedDownloads.self
        case .recordings: TapedLive.self
        case .feeds: WatchedFeed.self
        case .askers: AskedFilm.self
        case .timeShift: ShiftedLive.self
        case .oddTexts: OddTexts.self
        case .varied: VariedFiles.self
        }
    }

    func make(_ stage: Stage) -> Addition { type.init(stage) }

    /// The kinds that a seed has.
    static func chosen(seed: UInt64, keepsAll: Bool, parts: Parts) -> [AdditionKind] {
        var random = Seeded(seed ^ 0xADD)
        return allCases.filter { kind in
            random.chance(25) && parts.has(kind.rawValue) && (keepsAll || !kind.needsRoom)
        }
    }
}

/// Someone who uses the daemon's API.
class Orderer: Player {
    /// Sends an order, again after a pause for as long as the daemon does not answer or fails.
    func tell(
        _ method: String, _ target: String, body: String = "",
        then: @escaping (PlayerResponse) -> Void
    ) {
        guard !wasStopped, !isDone else { return }
        client.get(target, order: method == "GET" ? nil : (method, body)) { [weak self] response in
            guard let self else { return }
            world.note(
                "\(name): \(method) \(target.prefix(60)) \(response.status) \(String(decoding: response.body.prefix(200), as: UTF8.self).filter { $0 != "\n" })"
            )
            world.mark("order: \(response.status)")
            guard !wasStopped else { return }
            guard response.isWhole, response.status < 500 else {
                return world.after(2 * World.second) { [weak self] in
                    self?.tell(method, target, body: body, then: then)
                }
            }
            then(response)
        }
    }

    /// Reports an answer that the order cannot have.
    func refuse(_ what: String, _ response: PlayerResponse) {
        world.fault(
            .status,
            "\(name): \(what): \(response.status) \(String(decoding: response.body.prefix(200), as: UTF8.self))"
        )
    }

    func later(_ seconds: Int, _ action: @escaping () -> Void) {
        world.after(Int64(seconds) * World.second) { [weak self] in
            if self?.wasStopped == false, self?.isDone == false { action() }
        }
    }

    /// The path as an argument of a query.
    static func encoded(_ path: String) -> String {
        (SimulatedCDN.base + path).utf8.map { byte in
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || byte == 0x2E
            let digits = String(byte, radix: 16)
            return isPlain
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + digits
        }.joined()
    }
}

extension PlayerResponse {
    /// The value of a member of a JSON body, without quotation marks; nil if there is none.
    func member(_ name: String) -> String? {
        let text = String(decoding: body, as: UTF8.self)
        guard let start = text.firstRange(of: "\"\(name)\":") else { return nil }
        let rest = text[start.upperBound...].drop { $0 == " " }
        if rest.first == "\"" { return String(rest.dropFirst().prefix { $0 != "\"" }) }
        return String(rest.prefix { !",}]\n".contains($0) })
    }
}
