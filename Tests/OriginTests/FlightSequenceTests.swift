import CachePolicy
import FuzzSupport
import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import Upstream

/// Random events, by seed: the invariants of a flight hold for any sequence.
@Suite struct `Sequences of flight events` {
    private static let length: Int64 = 1_000_000

    /// The events of all sequences of a test, to verify that each occurred.
    private struct Tally {
        var events = 0
        var completed = 0
        var resumed = 0
        var verified = 0
        var compared = 0
        var repeated = 0
    }

    private static func story(_ random: inout SeededNumbers) -> FlightStory {
        let kind = Int.random(in: 0..<6, using: &random)
        let resource = FlightStory.resource {
            switch kind {
            case 0: $0.role = .playlist
            case 1: $0.role = nil
            case 2: $0.kind = .shared
            case 3: $0.role = .json
            default: break
            }
        }
        let starts: [Wanted] = [
            .whole, .whole, .span(start: 0, end: 1_000), .span(start: 500_000, end: nil),
            .span(start: 1_000, end: 2_000), .suffix(1_000),
        ]
        let requests = Int64.random(in: 1...24, using: &random)
        var story = FlightStory(
            resource: resource, wanted: starts.randomElement(using: &random) ?? .whole,
            allowance: .init(requests: requests)
        ) {
            $0.revalidates = random.happens(oneIn: 8)
            $0.beganAhead = random.happens(oneIn: 6)
            $0.hasDirectives = random.happens(oneIn: 8)
            $0.mayRepeat = !random.happens(oneIn: 8)
        }
        story.hasStrongValidator = !random.happens(oneIn: 3)
        story.random = Double.random(in: 0...1, using: &random)
        story.beginning.sniffs = kind < 2
        story.beginning.isStorable = !random.happens(oneIn: 10)
        return story
    }

    private static func head(
        _ story: inout FlightStory, _ random: inout SeededNumbers, _ tally: inout Tally
    ) {
        guard case .asking(let attempt) = story.machine.state else { return }
        let isQuestion = attempt.question == .end
        // Events that end most flights are rare, so that long sequences occur.
        let mostKinds = random.happens(oneIn: 6) ? 10 : 7
        let kind = Int.random(in: 0..<mostKinds, using: &random)
        switch isQuestion && random.happens(oneIn: 2) ? 4 : kind {
        case 0...3:
            if case .span(let start, let end) = attempt.wanted, attempt.askedRange != nil,
                start < length
            {
                return story.part(start, min(end ?? length, length) - 1, of: length)
            }
            let isShort = random.happens(oneIn: 4)
            story.whole(
                random.happens(oneIn: 2) ? nil : isShort ? 100 : length,
                provesItsEnd: random.happens(oneIn: 2))
        case 4:
            if isQuestion { tally.verified += 1 }
            // Nothing follows the last byte, whether that was asked or the rest was.
            story.endIsKnown = true
            story.head(
                ResponseFacts(
                    status: .rangeNotSatisfiable,
                    range: .unsatisfied(total: story.body?.offset ?? 0)),
                KnownFacts(hasObject: story.body != nil))
        case 5:
            story.status(.serviceUnavailable, retryAfter: random.happens(oneIn: 2) ? .zero : nil)
        case 6:
            let stored = StoredBody(spans: SpanSet([0..<500_000]), total: length)
            story.beginning.status = .ok
            story.beginning.provesItsEnd = true
            story.endIsKnown = true
            story.head(
                ResponseFacts(status: .ok, contentLength: length),
                KnownFacts(hasObject: true, compared: isQuestion ? nil : stored))
        case 7:
            let statuses: [HTTPStatus] = [.notFound, .notModified, .partialContent, .noContent]
            let status = statuses.randomElement(using: &random) ?? .ok
            story.beginning.status = status
            story.status(status)
        case 8 where random.happens(oneIn: 2):
            story.head(
                ResponseFacts(
                    status: .partialContent,
                    range: .satisfied(first: attempt.wanted.start, last: length - 1, total: length),
                    isCodedAsKnown: false),
                KnownFacts(hasObject: story.body != nil))
        case 9 where random.happens(oneIn: 2):
            story.beginning.status = .ok
            story.beginning.provesItsEnd = true
            story.endIsKnown = true
            story.head(ResponseFacts(status: .ok, contentLength: length, isOtherVersion: true))
        case 8: story.part(random.happens(oneIn: 2) ? 7 : 0, 99, of: length)
        default: story.whole(length)
        }
    }

    /// The first bytes, bytes to be compared or lists are being examined.
    private static func look(
        _ story: inout FlightStory, _ random: inout SeededNumbers, _ tally: inout Tally
    ) {
        if story.machine.isSniffing {
            let texts = ["#EXTM3U\n", "<html>", "plain", "#E"]
            let text = texts.randomElement(using: &random) ?? ""
            let found = story.machine.sniff(Array(text.utf8), isAtEnd: random.happens(oneIn: 2))
            story.perform(story.machine.sniffed(found, now: story.now))
        }
        if let comparison = story.machine.comparison {
            tally.compared += 1
            let left = comparison.start - comparison.position
            let count = random.happens(oneIn: 2) ? left : Int64.random(in: 1...left, using: &random)
            story.perform(story.machine.compared(count, areSame: !random.happens(oneIn: 4)))
        }
        if story.machine.filling?.stage == .readingLists, let facts = story.facts {
            let early = FlightMachine.EarlyList(
                pause: .milliseconds(300), lastRepeat: .seconds(6 as Int64))
            story.perform(
                story.machine.listsRead(
                    random.happens(oneIn: 2) ? early : nil, facts, story.ending()))
        }
    }

    private static func event(
        _ story: inout FlightStory, _ random: inout SeededNumbers, _ tally: inout Tally
    ) {
        let isWanted = !story.machine.waiters.isEmpty || !random.happens(oneIn: 4)
        var number = Int.random(in: 0..<20, using: &random)
        // The event that is due in this state is more likely than others.
        if random.happens(oneIn: 2) {
            switch story.machine.state {
            case .asking: number = 3
            case .comparing: number = 17
            case .filling(let filling):
                let isOpen = filling.sniffing != .settled || filling.stage == .readingLists
                number = isOpen ? 17 : [7, 7, 10, 11].randomElement(using: &random) ?? 7
            case .backingOff, .waitingForOthers: number = 13
            case .refused: number = 11
            case .due, .holding, .ended: break
            }
        }
        switch number {
        // The table removes a flight that has ended.
        case 0 where story.machine.hasEnded, 1 where story.machine.hasEnded: break
        case 0: story.join(random.happens(oneIn: 2) ? .head : .completion)
        case 1: story.join(.head, budget: OriginBudget(.init(requests: 3), now: story.now))
        case 2: if let id = story.joined.randomElement(using: &random) { story.leave(id) }
        case 3...6: head(&story, &random, &tally)
        case 7...9: story.bytes(Int64.random(in: 1...length, using: &random))
        case 10: story.end()
        case 11, 12:
            let kinds: [UpstreamError.Kind] = [
                .reset, .stalled, .truncated, .preempted, .connect, .reset, .reset,
                random.happens(oneIn: 4) ? .tooLarge(limit: 1) : .reset,
            ]
            let had = story.sends
            story.breaks(
                kinds.randomElement(using: &random) ?? .reset, isDown: random.happens(oneIn: 8),
                isWanted: isWanted)
            if story.sends == had, story.machine.phase == .backingOff { tally.resumed += 1 }
        case 13, 14:
            if story.machine.isWaitingForOthers {
                let all: [FlightMachine.Others] = [.busy, .done, .discarded, .filled]
                story.others(all.randomElement(using: &random) ?? .done, isWanted: isWanted)
            } else {
                let pause = random.happens(oneIn: 6) ? Interval.milliseconds(20) : nil
                story.timer(
                    .init(
                        isWanted: isWanted, pause: pause,
                        refusal: pause == nil || random.happens(oneIn: 2) ? nil : .noRoom))
            }
        case 15: story.pass(Int64.random(in: 0...3_000, using: &random))
        case 16:
            guard story.transfer == .running else { return }
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                story.perform(
                    story.machine.followsRedirect(now: story.now, isHeldByOrigin: false))
            case 1: story.roundEnds()
            default:
                let all: [FlightMachine.Omissions] = [.parents, .conditions, .decoding]
                let isDown = random.happens(oneIn: 8)
                if story.again(
                    without: all.randomElement(using: &random) ?? .parents,
                    refusal: isDown ? .noRoom : nil)
                {
                    tally.repeated += 1
                }
            }
        case 17: look(&story, &random, &tally)
        case 18:
            if random.happens(oneIn: 2) {
                _ = story.machine.pauseTransfer(at: story.now)
            } else {
                _ = story.machine.resumeTransfer()
            }
            if random.happens(oneIn: 8) { story.machine.isOutdated = true }
            if let actions = story.machine.takeForPlayback(.express) { story.perform(actions) }
        default:
            guard random.happens(oneIn: 10) else { return }
            if story.machine.waiters.isEmpty {
                story.perform(story.machine.abandon())
            } else {
                story.perform(story.machine.fail(.noRoom, cause: FillEnd.refused(.noRoom)))
            }
        }
    }

    @Test(arguments: 0..<8)
    func `random events hold the invariants of a flight`(part: UInt64) {
        var tally = Tally()
        var seed = part * 1_000_000
        while tally.events < 40_000 {
            seed += 1
            var random = SeededNumbers(seed: seed)
            var story = Self.story(&random)
            story.join(random.happens(oneIn: 2) ? .head : .completion)
            story.start(after: random.happens(oneIn: 6) ? .milliseconds(20) : nil)
            var eventsAfterEnd = 0
            for _ in 0..<200 where eventsAfterEnd < 5 {
                tally.events += 1
                Self.event(&story, &random, &tally)
                if story.machine.hasEnded { eventsAfterEnd += 1 }
            }
            if !story.machine.hasEnded {
                story.perform(story.machine.fail(.noRoom, cause: FillEnd.refused(.noRoom)))
            }
            if story.completed { tally.completed += 1 }
            story.checkEnd()
            #expect(story.broken == [], "seed \(seed)")
            if !story.broken.isEmpty { break }
        }
        // An event that never occurs proves nothing.
        let seen = [
            tally.completed, tally.resumed, tally.verified, tally.compared, tally.repeated,
        ]
        #expect(seen.allSatisfy { $0 >= 5 }, "\(tally)")
    }
}

extension SeededNumbers {
    fileprivate mutating func happens(oneIn count: Int) -> Bool {
        Int.random(in: 0..<count, using: &self) == 0
    }
}
