// Sequences of requests for a resource under a mount, all from one seed.
import ScenarioSupport

/// How an origin answers for one resource.
struct PeerResource: Sendable {
    enum Tag: Sendable { case strong, weak, none }

    /// The value of `Cache-Control`; nil for none.
    var control: String?
    /// The value of `Age`: what makes a response old without waiting.
    var age: Int?
    /// `Expires`, in seconds after `Date`.
    var expires: Int?
    /// `Last-Modified`, in seconds before `Date`; a later version is a minute younger.
    var modified: Int?
    var tag = Tag.strong
    var vary: String?
    var setsCookie = false
    var status = 200
    /// Labels the content as coded in Brotli for requests that take that coding.
    var isCoded = false
    var takesConditions = true
    var takesRanges = true
}

/// One request of a client; `@tag1` and `@date1` in fields stand for validators of version 1.
struct PeerAsk: Sendable {
    var method = "GET"
    var fields: [(name: String, value: String)] = []

    subscript(name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    var isSafe: Bool { ["GET", "HEAD", "OPTIONS"].contains(method) }
}

enum PeerStep: Sendable {
    case ask(PeerAsk)
    /// The next version.
    case change
    /// The origin answers this status from now on; 0 for closing the connection.
    case fail(Int)
    case heal
    /// Another `Cache-Control` and `Age` from now on.
    case control(String?, age: Int?)
}

extension PeerStep: CustomStringConvertible {
    var description: String {
        switch self {
        case .ask(let ask):
            ask.method + ask.fields.map { " | \($0.name): \($0.value)" }.joined()
        case .change: "the origin has the next version"
        case .fail(let status): status == 0 ? "the origin hangs up" : "the origin answers \(status)"
        case .heal: "the origin works"
        case .control(let control, let age):
            "from now on Cache-Control: \(control ?? "-"), Age: \(age.map { "\($0)" } ?? "-")"
        }
    }
}

struct PeerPlan: Sendable, CustomStringConvertible {
    let name: String
    var resource: PeerResource
    var steps: [PeerStep]

    var description: String {
        "\(name): \(resource)\n"
            + steps.enumerated().map { "  \($0.offset): \($0.element)" }.joined(separator: "\n")
    }
}

// MARK: Random plans

/// Numbers that are the same in every run of a seed (the SplitMix64 generator).
private struct Dice {
    var state: UInt64

    mutating func roll(_ sides: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((word ^ (word >> 31)) % UInt64(max(1, sides)))
    }

    mutating func oneIn(_ times: Int) -> Bool { roll(times) == 0 }

    mutating func pick<Element>(_ list: [Element]) -> Element { list[roll(list.count)] }
}

extension PeerPlan {
    init(seed: UInt64) {
        var dice = Dice(state: seed &* 0x1_0000_01B3)
        let resource = Self.resource(&dice)
        name = "seed \(seed)"
        self.resource = resource
        steps = [.ask(PeerAsk(fields: Self.selecting(resource, &dice)))]
        for _ in 0..<2 + dice.roll(5) { steps.append(Self.step(resource, &dice)) }
        // The last one shows what the steps before it left.
        steps += [.heal, .ask(PeerAsk(fields: Self.selecting(resource, &dice)))]
    }

    private static func resource(_ dice: inout Dice) -> PeerResource {
        var made = PeerResource()
        (made.control, made.age) = control(&dice)
        if dice.oneIn(10) { made.expires = dice.pick([-10, 0, 3_600]) }
        made.modified = dice.pick([nil, 864_000, 864_000, 3_600])
        made.tag = dice.pick([.strong, .strong, .weak, .none])
        if dice.oneIn(4) {
            made.vary = dice.pick(["X-Kind", "X-Kind, Accept-Language", "Cookie", "*"])
        }
        made.setsCookie = dice.oneIn(8)
        if dice.oneIn(8) { made.status = dice.pick([203, 301, 302, 404, 410, 500]) }
        if made.vary == nil, dice.oneIn(8) {
            made.isCoded = true
            made.vary = "Accept-Encoding"
        }
        made.takesConditions = !dice.oneIn(8)
        made.takesRanges = !dice.oneIn(4)
        return made
    }

    /// A `Cache-Control` and an `Age`; fresh for an hour or stale from the beginning.
    private static func control(_ dice: inout Dice) -> (String?, Int?) {
        let fresh = [
            "max-age=3600", "max-age=3600", "public, max-age=3600", "s-maxage=3600, max-age=0",
            "max-age=3600, must-revalidate", "MAX-AGE=3600", "max-age=\"3600\"",
            "max-age=3600, no-cache=\"Set-Cookie\"", "max-age=3600, private=\"X-Secret\"",
        ]
        let odd = [
            "no-cache", "no-store", "private, max-age=3600", "max-age=0", "no-cache, max-age=3600",
            "max-age=0, must-revalidate", "max-age=3600, no-store",
        ]
        let stale = [
            "max-age=60", "max-age=60, stale-if-error=86400", "max-age=60, must-revalidate",
            "max-age=60, proxy-revalidate", "s-maxage=60", "s-maxage=60, stale-if-error=86400",
            "max-age=60, stale-if-error=86400, must-revalidate",
        ]
        switch dice.roll(8) {
        case 0: return (nil, nil)
        case 1: return (dice.pick(odd), nil)
        case 2: return (dice.pick(fresh), 600)
        case 3, 4: return (dice.pick(stale), 200)
        default: return (dice.pick(fresh), nil)
        }
    }

    /// The fields that a `Vary` names, sometimes.
    private static func selecting(
        _ resource: PeerResource, _ dice: inout Dice
    ) -> [(name: String, value: String)] {
        guard let vary = resource.vary, vary != "*" else { return [] }
        return vary.split(separator: ",").compactMap { name in
            let name = String(name.drop { $0 == " " })
            guard !dice.oneIn(4) else { return nil }
            let values =
                switch name {
                case "Accept-Language": ["en", "fr"]
                case "Accept-Encoding": ["br", "gzip, br", "identity"]
                default: ["a=1", "b=2"]
                }
            return (name, dice.pick(values))
        }
    }

    private static func step(_ resource: PeerResource, _ dice: inout Dice) -> PeerStep {
        switch dice.roll(14) {
        case 0: return .change
        case 1: return .fail(dice.pick([500, 503, 0]))
        case 2: return .heal
        case 3:
            let (control, age) = control(&dice)
            return .control(control, age: age)
        default: return .ask(ask(resource, &dice))
        }
    }

    private static func ask(_ resource: PeerResource, _ dice: inout Dice) -> PeerAsk {
        var ask = PeerAsk(fields: selecting(resource, &dice))
        switch dice.roll(16) {
        case 0, 1: ask.method = "HEAD"
        case 2: ask.method = dice.pick(["POST", "PUT", "DELETE"])
        case 3: ask.method = "OPTIONS"
        default: break
        }
        guard ask.method == "GET" || ask.method == "HEAD" else { return ask }
        switch dice.roll(12) {
        case 0, 1:
            let value = dice.pick([
                "no-cache", "no-store", "max-age=0", "max-age=100", "max-stale", "max-stale=30",
                "min-fresh=7200", "only-if-cached",
            ])
            ask.fields.append(("Cache-Control", value))
        case 2: ask.fields.append(("Pragma", "no-cache"))
        case 3: ask.fields.append(("Authorization", "Basic dTpw"))
        case 4:
            ask.fields.append(("If-None-Match", dice.pick(["@tag0", "@tag1", "*", "\"other\""])))
        case 5: ask.fields.append(("If-Modified-Since", dice.pick(["@date0", "@date1"])))
        case 6: ask.fields.append(("Cookie", "c=1"))
        default: break
        }
        if ask.method == "GET", dice.oneIn(5) {
            let range = dice.pick([
                "bytes=0-4", "bytes=5-", "bytes=-5", "bytes=500-", "bytes=0-2,5-7", "lines=1-2",
            ])
            ask.fields.append(("Range", range))
            if dice.oneIn(4) { ask.fields.append(("If-Range", dice.pick(["@tag0", "@date0"]))) }
        }
        return ask
    }
}
