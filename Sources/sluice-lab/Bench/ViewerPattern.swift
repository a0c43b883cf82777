// How virtual viewers of a feed move, and what a run of visits was like for one.
import Lookahead
import Numbers

/// How a viewer moves.
enum ViewerPattern: String, CaseIterable {
    /// Three seconds each.
    case fixed
    /// Half a second to six.
    case random
    /// Most items for 0.2 to 0.6 s, one of five for four.
    case flick
    /// Two steps on for each one back, about two seconds each.
    case backforth

    /// One stay at an item.
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
            // Nobody swipes by the clock: without this runs of two patterns would be all alike.
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

/// What a run of visits was like.
struct ViewerFigures {
    var visits = 0
    /// Items whose first frame was not there in time.
    var loaders = 0
    /// Seconds to the first frame, of the visits that lasted so long.
    var startUps: [Double] = []
    var stalls = 0
    /// Seconds until each swipe was answered.
    var swipes: [Double] = []
    /// Bytes that the player was given, each once however often it was played.
    var played: Int64 = 0
    /// Bytes that the CDN sent.
    var sent: Int64 = 0
    var broken = 0
    /// Of each loader what was there of its item when the viewer came.
    var reasons: [String] = []

    /// Of a thousand items.
    var loadersOfThousand: Double { Double(loaders) * 1_000 / Double(max(1, visits)) }

    /// What came and was never given to the player, in per cent of what came.
    var wasted: Double { Double(max(0, sent - played)) * 100 / Double(max(1, sent)) }
}

/// One way to get a feed ready: a scheme by its name, and parameters that differ from it.
struct FeedScheme {
    /// As in the API: `default`, or `default,ahead=4,activeFirst=1`.
    let name: String
    let parameters: FeedParameters
    /// Members of the order.
    let json: String

    /// Why a text is no scheme.
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
            guard pair.count == 2, let value = OutsideNumber.decimal(pair[1], in: 0...1e12)
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
