// Orders for downloads and recordings that all nodes see: small objects in the bucket, whose names tell
// what they are and which is newer.
import Numbers
package import Posix

/// The number of an order, the same on all nodes.
package struct SharedOrderID: Hashable, Sendable, Comparable {
    package enum Kind: String, Sendable, CaseIterable {
        case download
        case recording
    }

    package let kind: Kind
    /// Lower-case hexadecimal digits, 16 at most.
    package let number: String

    /// Nil for anything but hexadecimal digits.
    package init?(_ kind: Kind, _ number: some StringProtocol) {
        guard SharedOrder.isHexadecimal(number, atMost: 16) else { return nil }
        self.kind = kind
        self.number = String(number)
    }

    /// Parses `text`.
    package init?(text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let kind = Kind(rawValue: String(parts[0])) else { return nil }
        self.init(kind, parts[1])
    }

    /// For example `download-0123456789ab`.
    package var text: String { "\(kind.rawValue)-\(number)" }

    package static func < (a: SharedOrderID, b: SharedOrderID) -> Bool { a.text < b.text }
}

/// One version of an order.
package struct SharedOrder: Hashable, Sendable {
    /// What shall be done.
    package enum Wish: String, Sendable {
        case run
        case pause
        /// Nothing, and it is no longer listed.
        case cancel
        /// A recording: nothing, since it has ended or shall end.
        case end

        /// True if a node has to hold it.
        package var needsNode: Bool { self == .run || self == .pause }
    }

    package let id: SharedOrderID
    package var wish: Wish
    /// The arguments that it can be given with to any node: printable ASCII.
    package var query: String
    /// The time of this version; the latest one counts.
    package var given: WallTime
    /// The node that it was given to.
    package var node: String

    private static let firstLine = "sluice order 1"
    /// The most bytes of an object.
    package static let largest = 70_000
    /// The longest query.
    package static let longestQuery = 40_000

    /// Nil for a query that is too long or not printable ASCII, and for a node that is no number.
    package init?(
        _ id: SharedOrderID, _ wish: Wish, query: String, given: WallTime, node: String
    ) {
        guard !query.isEmpty, query.utf8.count <= Self.longestQuery,
            query.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), given.nanoseconds > 0,
            Self.isHexadecimal(node, atMost: 16)
        else { return nil }
        self.id = id
        self.wish = wish
        self.query = query
        self.given = given
        self.node = node
    }

    /// The name after the prefix of the location; those of one order sort by time.
    package var name: String {
        SharedOrderNames.orders + id.text + "-" + String(given.nanoseconds, width: 19) + "-" + node
    }

    package var text: [UInt8] { Array("\(Self.firstLine)\n\(wish.rawValue)\n\(query)\n".utf8) }

    /// Parses an object; nil for any other name or text.
    package init?(name: String, text: [UInt8]) {
        guard case .order(let id, let given, let node) = SharedOrderNames.Meaning(name),
            text.count <= Self.largest
        else { return nil }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        guard lines.count == 3, lines[0] == Self.firstLine,
            let wish = Wish(rawValue: String(lines[1]))
        else { return nil }
        self.init(id, wish, query: String(lines[2]), given: given, node: node)
    }

    /// True for 1 to `count` lower-case hexadecimal digits.
    package static func isHexadecimal(_ text: some StringProtocol, atMost count: Int) -> Bool {
        (1...count).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
            }
    }
}

/// What a node tells of an order that it holds.
package struct SharedOrderProgress: Hashable, Sendable {
    package let id: SharedOrderID
    /// A word of the listing, such as `running`.
    package var state: String
    /// 0...100.
    package var percent: Int64
    package var bytes: Int64
    /// The name of the title.
    package var name: String

    package init(
        id: SharedOrderID, state: String, percent: Int64, bytes: Int64, name: String
    ) {
        self.id = id
        self.state = state
        self.percent = min(100, max(0, percent))
        self.bytes = min(max(0, bytes), Int64(ExternalNumber.largest))
        self.name = name
    }

    private static let refusedState = "refused"

    /// Tells that the node cannot begin this version of an order.
    init(refused given: WallTime, _ id: SharedOrderID) {
        self.init(
            id: id, state: Self.refusedState, percent: 0, bytes: 0, name: "\(given.nanoseconds)")
    }

    /// The version that the node cannot begin; nil for an order that it carries out.
    var refused: WallTime? {
        guard state == Self.refusedState else { return nil }
        return ExternalNumber.integer(name, in: 1...Int64.max).map { WallTime(nanoseconds: $0) }
    }

    /// True once nothing of it is left to do, so that its node may be away for long.
    var isDone: Bool { ["complete", "done", "failed"].contains(state) }

    private static let firstLine = "sluice progress 1"
    /// The most orders that a node tells of.
    package static let most = 1_000
    /// The longest name in bytes.
    private static let longestName = 200

    /// The text of a node's progress.
    package static func text(_ all: [SharedOrderProgress]) -> [UInt8] {
        let lines = all.prefix(most).map { one in
            let name = one.name.map { $0.isNewline ? " " : String($0) }.joined()
            let short = String(decoding: name.utf8.prefix(longestName), as: UTF8.self)
            return "\(one.id.text) \(one.state) \(one.percent) \(one.bytes) \(short)\n"
        }
        return Array("\(firstLine)\n\(lines.joined())".utf8)
    }

    /// Parses a text; lines that say nothing are skipped, nil for any other text.
    package static func parse(_ text: [UInt8]) -> [SharedOrderProgress]? {
        let lines = String(decoding: text, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: true)
        guard lines.first.map({ $0 == firstLine }) == true else { return nil }
        return lines.dropFirst().prefix(most).compactMap { line in
            let parts = line.split(
                separator: " ", maxSplits: 4, omittingEmptySubsequences: false)
            guard parts.count == 5, let id = SharedOrderID(text: parts[0]),
                (1...16).contains(parts[1].utf8.count),
                parts[1].utf8.allSatisfy({ (0x61...0x7A).contains($0) }),
                let percent = ExternalNumber.integer(parts[2], in: 0...100),
                let bytes = ExternalNumber.integer(
                    parts[3], in: 0...Int64(ExternalNumber.largest)),
                parts[4].utf8.count <= 4 * longestName
            else { return nil }
            return SharedOrderProgress(
                id: id, state: String(parts[1]), percent: Int64(percent), bytes: bytes,
                name: String(parts[4]))
        }
    }
}

/// The names of all that concerns orders, after the prefix of the location.
///
/// They lie beside `v1/`, whose objects a bucket expires.
package enum SharedOrderNames {
    package static let all = "orders1/"
    static let orders = all + "order/"
    static let claims = all + "claim/"
    static let nodes = all + "node/"
    static let progress = all + "progress/"

    /// The heartbeat of a node.
    package static func node(_ node: String) -> String { nodes + node }

    /// What a node tells of its orders.
    package static func progress(of node: String) -> String { progress + node }

    /// The claim of an order; whoever holds the one with the greatest turn has the order.
    package static func claim(_ id: SharedOrderID, turn: Int) -> String {
        claims + id.text + "-" + String(Int64(turn), width: 6)
    }

    /// The greatest turn of a claim.
    package static let lastTurn = 999_999

    /// What a name stands for.
    package enum Meaning: Hashable, Sendable {
        case order(SharedOrderID, given: WallTime, node: String)
        case claim(SharedOrderID, turn: Int)
        case node(String)
        case progress(String)

        /// Nil for any other name.
        package init?(_ name: String) {
            if let rest = Self.rest(of: name, after: SharedOrderNames.nodes) {
                guard SharedOrder.isHexadecimal(rest, atMost: 16) else { return nil }
                self = .node(String(rest))
                return
            }
            if let rest = Self.rest(of: name, after: SharedOrderNames.progress) {
                guard SharedOrder.isHexadecimal(rest, atMost: 16) else { return nil }
                self = .progress(String(rest))
                return
            }
            if let rest = Self.rest(of: name, after: SharedOrderNames.claims) {
                let parts = rest.split(separator: "-", omittingEmptySubsequences: false)
                guard parts.count == 3, parts[2].utf8.count == 6,
                    let id = SharedOrderID(text: "\(parts[0])-\(parts[1])"),
                    let turn = ExternalNumber.integer(parts[2], in: 0...SharedOrderNames.lastTurn)
                else { return nil }
                self = .claim(id, turn: turn)
                return
            }
            guard let rest = Self.rest(of: name, after: SharedOrderNames.orders) else { return nil }
            let parts = rest.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 4, parts[2].utf8.count == 19,
                let id = SharedOrderID(text: "\(parts[0])-\(parts[1])"),
                let given = ExternalNumber.integer(parts[2], in: 1...Int64.max),
                SharedOrder.isHexadecimal(parts[3], atMost: 16)
            else { return nil }
            self = .order(id, given: WallTime(nanoseconds: given), node: String(parts[3]))
        }

        private static func rest(of name: String, after start: String) -> Substring? {
            name.hasPrefix(start) ? name.dropFirst(start.count) : nil
        }
    }
}
