import HLS
import URISyntax

@testable import Lookahead

/// A feed of equal items, for the tests of its planner.
struct FeedStory {
    var planner: FeedPlanner
    var now = 0.0
    /// Running fetches, as `<content>:<name>`, with their ids.
    var running: [String: AheadID] = [:]
    var cancelled: [String] = []
    var yielding: Set<String> = []
    var reads: [Int] = []
    /// All fetches that were begun, in order.
    var order: [String] = []

    init(_ count: Int = 20, at index: Int = 0, _ change: (inout FeedParameters) -> Void = { _ in })
    {
        var parameters = FeedParameters()
        parameters.activeSeconds = 60
        change(&parameters)
        planner = FeedPlanner(
            contents: Array(0..<count), weights: Array(repeating: 1, count: count), at: index,
            .forward, parameters)
        take(planner.start(at: 0))
    }

    /// An item of five segments of 4 s, each of 100 kB, with an initialization section.
    static func plan(_ content: Int, segments: Int = 5) -> FeedPlan {
        let section = MediaPiece(LookaheadStory.url("\(content)/init.mp4"), role: .initialization)
        let picture = CompactMediaList(
            segments: (0..<segments).map { number in
                CompactMediaList.Segment(
                    piece: MediaPiece(
                        LookaheadStory.url("\(content)/\(number).m4s"), role: .segment),
                    seconds: 4, sequence: number, structure: [section])
            }, isLive: false)
        return FeedPlan([picture], rate: 25_000)
    }

    mutating func move(to index: Int) { take(planner.move(to: index, at: now)) }

    /// Answers every question about items, and completes every fetch, until none is begun any more.
    mutating func settle() {
        for _ in 0..<200 {
            if let content = reads.first {
                reads.removeFirst()
                take(planner.learned(content, Self.plan(content), at: now))
            } else if let name = order.first(where: { running[$0] != nil }) {
                finish(name)
            } else {
                return
            }
        }
    }

    /// Only answers the questions.
    mutating func answerReads() {
        while let content = reads.first {
            reads.removeFirst()
            take(planner.learned(content, Self.plan(content), at: now))
        }
    }

    mutating func finish(_ name: String, bytes: Int64 = 100_000) {
        guard let id = running.removeValue(forKey: name) else { return }
        yielding.remove(name)
        let result = AheadResult(.stored, bytes: bytes, size: bytes, seconds: 0.1)
        take(planner.ended(id, result, at: now))
    }

    mutating func take(_ actions: [FeedAction]) {
        for action in actions {
            switch action {
            case .read(let content): reads.append(content)
            case .fetch(let id, _, let piece, let yields):
                let name = String(piece.url.path.dropFirst())
                running[name] = id
                order.append(name)
                if yields { yielding.insert(name) } else { yielding.remove(name) }
            case .setYields(let id, let yields):
                for (name, other) in running where other == id {
                    if yields { yielding.insert(name) } else { yielding.remove(name) }
                }
            case .cancel(let id):
                for (name, other) in running where other == id {
                    running[name] = nil
                    yielding.remove(name)
                    cancelled.append(name)
                    take(planner.ended(id, AheadResult(.cancelled), at: now))
                }
            }
        }
    }
}
