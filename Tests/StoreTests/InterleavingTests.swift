import FuzzSupport
import Testing

/// Random orders of what fills, readers, removals and restarts do to the objects of a small store.
///
/// A fill writes a piece in one step and shows it to readers in a later one; a reader finds bytes
/// in one step and sends them in a later one. Everything else may come in between, as on several
/// threads. One thread makes all steps; they follow from the seed, apart from what is evicted.
@Suite struct InterleavingTests {
    private static let seedsPerGroup = 4

    @Test(.timeLimit(.minutes(2)), arguments: 0..<4)
    func `readers get exact bytes, whatever comes between two steps of a fill`(group: Int) throws {
        var raced = 0
        for number in 1...Self.seedsPerGroup {
            let seed = UInt64(group * Self.seedsPerGroup + number)
            let world = try InterleavedWorld(seed: seed)
            do {
                for _ in 0..<500 { try world.step() }
                try world.end()
            } catch {
                Issue.record("seed \(seed): \(error)\n\(world.lastSteps)")
                world.abandon()
            }
            raced += world.raced
        }
        // Otherwise these seeds do not test what they are for.
        #expect(raced > 0, "nothing was punched between the write of a piece and its end")
    }
}

/// What one step does.
enum InterleavedStep: CaseIterable {
    case create, publish, beginFill, write, extend, endFill, learnTotal
    case enter, look, wait, take, leave, punch
    case shortBytes, readBody, lookup, release
    case forgetName, remove, clear, discard, replaceHead
    case finish, catchUp, flush, reserve, reopen, kill

    /// How often it is drawn, in about a thousand draws.
    private var weight: Int {
        switch self {
        case .create: 20
        case .publish: 25
        case .beginFill: 60
        case .write: 180
        case .extend: 130
        case .endFill: 25
        case .learnTotal: 5
        case .enter: 60
        case .look: 120
        case .wait: 50
        case .take: 110
        case .leave: 25
        // Often, so that one comes between `write` and `extend`.
        case .punch: 90
        case .shortBytes, .lookup: 20
        case .readBody, .finish: 10
        case .release: 15
        case .forgetName, .remove, .discard, .replaceHead: 6
        case .clear, .flush, .reopen, .kill: 2
        case .catchUp: 8
        case .reserve: 5
        }
    }

    /// Each step as often as it is to be drawn.
    static let deck = allCases.flatMap { Array(repeating: $0, count: $0.weight) }
}

/// The rule that a step broke.
struct BrokenRule: Error, CustomStringConvertible {
    let description: String
}

/// The content of all bodies.
enum KnownBytes {
    /// Odd, so that no two pages of a body are equal.
    private static let period = 262_157
    static let longest = 2 << 20

    static let all: [UInt8] = {
        var random = SeededNumbers(seed: 1)
        var part: [UInt8] = []
        while part.count < period { withUnsafeBytes(of: random.next()) { part += $0 } }
        part.removeLast(part.count - period)
        var bytes = part
        while bytes.count < period + longest { bytes += part }
        return bytes
    }()

    /// Returns where the content of a body begins; different for each.
    static func start(of number: Int) -> Int { number * 4_099 % period }
}
