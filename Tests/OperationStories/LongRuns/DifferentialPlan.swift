// The plan of a run of the differential test: resources and groups of actions, all from one seed.
import ScenarioSupport

/// One request of a client.
struct DifferentialAsk: Sendable, Equatable {
    enum Condition: Sendable, Equatable {
        case none
        /// With the entity tag of a version.
        case unlessTag(Int)
        /// With the date of a version.
        case unlessSince(Int)
        /// With the strongest validator of a version, for the range.
        case range(Int)
    }

    var subject: Int
    var isMounted: Bool
    var method = "GET"
    var range: String?
    var condition = Condition.none
    /// Hangs up after this many bytes of the body.
    var leavesAfter: Int?
}

/// An action at some moment of a run.
enum DifferentialAction: Sendable, Equatable {
    case ask(DifferentialAsk)
    case change(Int)
    case fail(Int, [OriginFault])
    case purge(Int)
    case clear
    case restart(isKill: Bool)

    /// The resource that it concerns.
    var subject: Int? {
        switch self {
        case .ask(let ask): ask.subject
        case .change(let subject), .fail(let subject, _), .purge(let subject): subject
        case .clear, .restart: nil
        }
    }
}

extension DifferentialAction: CustomStringConvertible {
    var description: String {
        switch self {
        case .ask(let ask):
            var text = "\(ask.method) subject\(ask.subject)" + (ask.isMounted ? " (mount)" : "")
            if let range = ask.range { text += " \(range)" }
            if ask.condition != .none { text += " \(ask.condition)" }
            if let bytes = ask.leavesAfter { text += ", leaves after \(bytes)" }
            return text
        case .change(let subject): return "change subject\(subject)"
        case .fail(let subject, let faults): return "fail subject\(subject) \(faults)"
        case .purge(let subject): return "purge subject\(subject)"
        case .clear: return "clear"
        case .restart(let isKill): return isKill ? "kill and start" : "stop and start"
        }
    }
}

/// A run: groups of actions, one group after the other, the actions of a group concurrently.
struct DifferentialPlan: Sendable {
    struct Timed: Sendable, Equatable {
        /// Milliseconds since the beginning of its group.
        var at: Int
        var action: DifferentialAction
    }

    let seed: UInt64
    var cacheSize: String
    var traits: [OriginTraits]
    var groups: [[Timed]]

    var description: String {
        var lines = ["seed \(seed), --cache-size \(cacheSize)"]
        let used = Set(groups.joined().compactMap(\.action.subject))
        for (index, traits) in traits.enumerated() where used.contains(index) {
            let about =
                "\(traits.validator) \(traits.framing)"
                + (traits.takesRanges ? " ranges" : "") + (traits.isEncoded ? " encoded" : "")
                + " lengths \(traits.lengths)" + (traits.pace.map { " pace \($0)" } ?? "")
                + (traits.cacheControl.map { " \($0)" } ?? "")
            lines.append("  subject\(index): \(about)")
        }
        for (number, group) in groups.enumerated() {
            let actions = group.map { "\($0.at) ms: \($0.action)" }
            lines.append("  \(number): " + actions.joined(separator: "; "))
        }
        return lines.joined(separator: "\n")
    }
}

extension DifferentialPlan {
    /// The run of a seed.
    init(seed: UInt64) {
        var dice = SeededDice(seed, 40)
        self.seed = seed
        let sizes = ["1MB", "2MB", "5MB", "200MB"]
        cacheSize = sizes[dice.roll(sizes.count)]
        traits = (0..<6).map { _ in Self.traits(&dice) }
        groups = []
        // Some resources never change and never fail, so requests for them must succeed.
        let steady = Set((0..<6).filter { $0 % 2 == 0 })
        for _ in 0..<14 { groups.append(Self.group(traits, steady, &dice)) }
    }

    private static func traits(_ dice: inout SeededDice) -> OriginTraits {
        var made = OriginTraits()
        made.validator = OriginTraits.Validator.allCases[dice.roll(5)]
        made.framing = OriginTraits.Framing.allCases[dice.roll(3)]
        made.takesRanges = !dice.oneIn(4)
        made.isEncoded = dice.oneIn(4)
        let controls: [String?] = [nil, "max-age=60", "no-cache", "no-store", "max-age=0"]
        made.cacheControl = controls[dice.roll(controls.count)]
        let sizes = [0, 1, 700, 20_000, 90_000, 300_000, 800_000, 1_500_000, 2_700_000]
        let size = sizes[dice.oneIn(12) ? 0 : 1 + dice.roll(sizes.count - 1)]
        made.lengths = dice.oneIn(2) ? [size] : [size, size / 2 + 1, size + 10_000]
        if size > 100_000, dice.oneIn(2) { made.pace = size / (1 + dice.roll(2)) * 2 }
        return made
    }

    private static func group(
        _ traits: [OriginTraits], _ steady: Set<Int>, _ dice: inout SeededDice
    ) -> [Timed] {
        if dice.oneIn(12) { return [Timed(at: 0, action: .restart(isKill: dice.oneIn(2)))] }
        var group: [Timed] = []
        let main = dice.roll(traits.count)
        for _ in 0...dice.roll(6) {
            let subject = dice.oneIn(4) ? dice.roll(traits.count) : main
            let at = dice.oneIn(2) ? 0 : dice.roll(300)
            group.append(Timed(at: at, action: .ask(ask(subject, traits[subject], &dice))))
        }
        if !steady.contains(main) {
            if dice.oneIn(3) { group.append(Timed(at: dice.roll(250), action: .change(main))) }
            if dice.oneIn(3) {
                let count = 1 + dice.roll(2)
                let faults = (0..<count).map { _ in fault(traits[main], &dice) }
                group.insert(Timed(at: 0, action: .fail(main, faults)), at: 0)
            }
        }
        if dice.oneIn(9) { group.append(Timed(at: dice.roll(200), action: .purge(main))) }
        if dice.oneIn(25) { group.append(Timed(at: dice.roll(200), action: .clear)) }
        return group
    }

    private static func fault(_ traits: OriginTraits, _ dice: inout SeededDice) -> OriginFault {
        let within = 1 + dice.roll(max(1, traits.lengths[0]))
        switch dice.roll(8) {
        case 0, 1, 2: return .cut(within)
        case 3: return .reset(within)
        case 4: return .status([404, 500, 503][dice.roll(3)])
        case 5: return .shifted(1 + dice.roll(1_000))
        case 6: return .unlabelled
        default: return .unaskedPart(within)
        }
    }

    private static func ask(
        _ subject: Int, _ traits: OriginTraits, _ dice: inout SeededDice
    ) -> DifferentialAsk {
        var ask = DifferentialAsk(subject: subject, isMounted: dice.oneIn(2))
        if dice.oneIn(7) { ask.method = "HEAD" }
        let size = traits.lengths[0]
        if dice.oneIn(2) {
            let first = dice.roll(size + size / 8 + 2)
            ask.range =
                switch dice.roll(6) {
                case 0, 1: "bytes=\(first)-"
                case 2: "bytes=-\(1 + dice.roll(size + 2))"
                case 3: "bytes=0-\(dice.roll(3))"
                default: "bytes=\(first)-\(first + dice.roll(size / 2 + 2))"
                }
        }
        switch dice.roll(12) {
        case 0: ask.condition = .unlessTag(dice.roll(3))
        case 1: ask.condition = .unlessSince(dice.roll(3))
        case 2 where ask.range != nil: ask.condition = .range(dice.roll(3))
        default: break
        }
        if ask.method == "GET", dice.oneIn(6) { ask.leavesAfter = dice.roll(size + 1) }
        return ask
    }
}
