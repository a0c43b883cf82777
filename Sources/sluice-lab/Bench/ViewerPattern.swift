// How virtual viewers move through a feed, and the figures of a run of visits.
import Lookahead
import Numbers

/// A viewer's movement through a feed.
enum ViewerPattern: String, CaseIterable {
    /// Three seconds per item.
    case fixed
    /// Half a second to six seconds per item.
    case random
    /// Most items for 0.2 to 0.6 s, one in five for 4 s.
    case flick
    /// Two steps forward for each step back, about two seconds per item.
    case backforth

    /// One visit to an item.
    struct Visit {
        let item: Int
        let seconds: Double
    }

    /// The visits of one run; the same for the same seed.
    func visits(_ count: Int, items: Int, seed: UInt64) -> [Visit] {
        var random = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func unit() -> Double {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Double(random >> 11) / Double(1 << 53)
        }
        var item = 0
        return (0..<count).map { _ in
            let place = min(items - 1, item)
            // Nobody swipes by the clock: without dither all runs of two of the patterns would be
            // identical.
            let dither = 0.9 + unit() * 0.2
            switch self {
            case .fixed:
                item += 1
                return Visit(item: place, seconds: 3 * dither)
            case .random:
                item += 1
                return Visit(item: place, seconds: 0.5 + unit() * 5.5)
            case .flick:
                item += 1
                let stays = unit() < 0.2
                return Visit(item: place, seconds: stays ? 4 * dither : 0.2 + unit() * 0.4)
            case .backforth:
                item = max(0, item + (unit() < 1.0 / 3 ? -1 : 1))
                return Visit(item: place, seconds: 2 * dither)
            }
        }
    }
}

/// The figures of a run of visits.
struct ViewerFigures {
    var visits = 0
    /// Items whose first frame was late.
    var loaders = 0
    /// Seconds to the first frame, for visits that lasted until then.
    var startUps: [Double] = []
    var stalls = 0
    /// Seconds until each swipe was answered.
    var swipes: [Double] = []
    /// Bytes sent to the player, each counted once however often it was played.
    var played: Int64 = 0
    /// Bytes that the CDN sent.
    var sent: Int64 = 0
    var broken = 0
    /// For each loader, what was stored of its item when the viewer arrived.
    var reasons: [String] = []

    /// Loaders per thousand items.
    var loadersOfThousand: Double { Double(loaders) * 1_000 / Double(max(1, visits)) }

    /// The share of fetched bytes that the player never got, in per cent.
    var wasted: Double { Double(max(0, sent - played)) * 100 / Double(max(1, sent)) }
}

/// One way to get a feed ready: a scheme by its name, and parameters that differ from it.
struct FeedScheme {
    /// As in the API: `default`, or `default,ahead=4,activeFirst=1`.
    let name: String
    let parameters: FeedParameters
    /// Members of the order.
    let json: String

    /// The reason why a text is not a valid scheme.
    struct Fault: Error {
        let reason: String
    }

    init(_ text: String) throws(Fault) {
        var parts = text.split(separator: ",").map(String.init)[...]
        let scheme = parts.popFirst() ?? ""
        guard var made = FeedParameters(named: scheme) else {
            throw Fault(reason: "a scheme is none, published or default, not '\(scheme)'")
        }
        var members: [String] = []
        for part in parts {
            let pair = part.split(separator: "=").map(String.init)
            guard pair.count == 2, let value = ExternalNumber.decimal(pair[1], in: 0...1e12)
            else {
                throw Fault(reason: "a parameter is set as NAME=NUMBER, not '\(part)'")
            }
            if pair[0] == "activeFirst" {
                made.activeFirst = value != 0
                members.append("\"activeFirst\":\(made.activeFirst)")
            } else if let fault = made.set(pair[0], value) {
                throw Fault(reason: fault)
            } else {
                members.append("\"\(pair[0])\":\(pair[1])")
            }
        }
        name = text
        parameters = made
        json = "\"scheme\":\"\(scheme)\",\"parameters\":{\(members.joined(separator: ","))}"
    }
}
