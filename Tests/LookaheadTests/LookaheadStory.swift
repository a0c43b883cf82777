// A planner with a title of one video and one audio track, for the tests of look-ahead.
import HLS
import URISyntax

@testable import Lookahead

/// Plays through a planner and keeps the actions that it returned.
struct LookaheadStory {
    var planner: LookaheadPlanner
    var now = 0.0
    let player = PlayerID(session: 1, client: 7)
    /// Running fetches, by what they fetch.
    var running: [String: AheadID] = [:]
    var cancelled: [String] = []

    init(_ limits: LookaheadLimits = LookaheadLimits()) {
        planner = LookaheadPlanner(limits: limits)
    }

    static func url(_ name: String) -> AbsoluteURL {
        guard let url = try? AbsoluteURL("https://cdn.test/\(name)") else { preconditionFailure() }
        return url
    }

    static func picture(
        _ name: String, _ numbers: Range<Int>, isLive: Bool = false, structure: [MediaPiece] = []
    ) -> CompactMediaList {
        CompactMediaList(
            segments: numbers.map { number in
                CompactMediaList.Segment(
                    piece: MediaPiece(url("\(name)\(number).ts"), role: .segment), seconds: 4,
                    sequence: number, structure: structure)
            }, isLive: isLive)
    }

    /// Gives the planner a list under the prefix of its segments.
    mutating func see(
        _ name: String, _ picture: CompactMediaList,
        _ terms: LookaheadPlanner.ListTerms = .init(mode: .seconds(12))
    ) {
        let id = ListID(session: player.session, url: Self.url("\(name).m3u8"))
        take(planner.saw(picture, of: id, terms, at: now))
    }

    /// The player requests a segment.
    mutating func read(_ name: String, _ hints: PlayerHints? = nil) {
        take(planner.read(Self.url(name), by: player, hints, at: now))
    }

    /// A running fetch completes.
    mutating func finish(_ name: String, bytes: Int64 = 1_000_000, seconds: Double = 1) {
        guard let id = running.removeValue(forKey: name) else { return }
        let result = AheadResult(.stored, bytes: bytes, size: bytes, seconds: seconds)
        take(planner.ended(id, result, at: now))
    }

    /// Completes running fetches repeatedly until none starts any more.
    mutating func finishAll() -> [String] {
        var order: [String] = []
        while let name = running.keys.sorted().first, order.count < 100 {
            order.append(name)
            finish(name)
        }
        return order
    }

    mutating func take(_ actions: [LookaheadAction]) {
        for action in actions {
            switch action {
            case .fetch(let id, let piece, _):
                running[piece.url.lastPathSegment] = id
            case .cancel(let id):
                for (name, other) in running where other == id {
                    running[name] = nil
                    cancelled.append(name)
                    _ = planner.ended(id, AheadResult(.cancelled), at: now)
                }
            }
        }
    }
}
