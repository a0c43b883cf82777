import CachePolicy
import HTTP
import Model
@testable import Origin
import Posix
import Testing
import URISyntax
import Upstream

/// Which of the second level and the origin serves a request, for any order of their events.
@Suite struct SharedRaceTests {
    /// What may happen, in the columns of the table below.
    private enum Event: CaseIterable {
        case time, head, failure, end, refusal, begins, complete, missing
    }

    /// A race whose actions are told in words.
    private struct Story {
        var race: SharedRace
        private let origin: AbsoluteURL

        init(refusal: ProxyFailure? = nil) throws {
            race = SharedRace(headStart: .milliseconds(100), refusal: refusal)
            origin = try AbsoluteURL("http://h/a.ts")
        }

        @discardableResult mutating func take(_ event: Event) -> String {
            switch event {
            case .time: return Self.words(race.timeIsOver())
            case .head: return Self.words(race.originAnswered(head(.ok)))
            case .failure: return Self.words(race.originAnswered(head(.notFound)))
            case .end:
                return Self.words(race.originEnded(.failure(UpstreamError(.reset, host: "h"))))
            case .refusal: return Self.words(race.originRefused(SharedRaceTests.down))
            case .begins:
                let now = WallTime(seconds: 1)
                return Self.words(
                    race.readBegan(
                        StoredHead(
                            status: .ok, fields: Fields(), requestTime: now, responseTime: now,
                            finalURL: "-")))
            case .complete: return Self.words(race.readEnded(isComplete: true))
            case .missing: return Self.words(race.readEnded(isComplete: false))
            }
        }

        mutating func take(_ events: [Event]) -> [String] {
            var told: [String] = []
            for event in events { told.append(take(event)) }
            return told
        }

        private func head(_ status: HTTPStatus) -> TransferHead {
            TransferHead(status: status, kept: Fields(), finalURL: origin)
        }

        private static func words(_ reply: SharedRace.Reply) -> String {
            let first = reply.isKeptBack ? "kept" : "not kept"
            return reply.actions.isEmpty ? first : "\(first), \(words(reply.actions))"
        }

        static func words(_ actions: [SharedRace.Action]) -> String {
            actions.map { word($0) }.joined(separator: ", ")
        }

        private static func word(_ action: SharedRace.Action) -> String {
            switch action {
            case .wait(let time): "wait \(time.nanoseconds / 1_000_000)"
            case .stopWaiting: "stop"
            case .askOrigin(let isHedge): isHedge ? "hedge" : "ask"
            case .endOrigin: "end origin"
            case .endRead: "end read"
            case .giveUpRead: "give up"
            case .finish: "finish"
            case .resume: "resume"
            case .leave: "leave"
            case .handle(.refused): "refused"
            case .handle(.answered(let head, .none)): "\(head.status.rawValue)"
            case .handle(.answered(let head, .some)): "\(head.status.rawValue) and end"
            case .handle(.ended): "ended"
            }
        }
    }

    private static let down = ProxyFailure(.origin, .badGateway, "down")

    // MARK: The head start

    @Test func `the origin is asked once the head start is over`() throws {
        var story = try Story()
        #expect(Story.words(story.race.begin()) == "wait 100")
        #expect(story.take([.time, .time]) == ["hedge", ""])
    }

    @Test func `a read that ends in the head start has the origin asked, once`() throws {
        var story = try Story()
        #expect(story.take([.missing, .time, .missing]) == ["leave, ask", "", ""])
    }

    @Test func `an object that begins in the head start leaves the origin unasked`() throws {
        var story = try Story()
        #expect(story.take([.begins, .time]) == ["stop, end origin", ""])
        #expect(story.race.hasWon && story.race.head?.finalURL == "-")
        #expect(story.take(.complete) == "finish, leave")
    }

    @Test func `an origin that goes down in the head start is not asked`() throws {
        var late = try Story()
        #expect(
            late.take([.refusal, .time, .time])
                == ["kept", "wait 3000", "give up, leave, refused"])
        var missing = try Story()
        #expect(missing.take([.refusal, .missing]) == ["kept", "leave, refused"])
        var begun = try Story()
        #expect(
            begun.take([.refusal, .begins, .missing]) == ["kept", "stop, end origin", "resume"])
    }

    @Test func `an origin that is down before the race is the answer if the read finds nothing`()
        throws
    {
        var late = try Story(refusal: Self.down)
        #expect(Story.words(late.race.begin()) == "wait 3000")
        #expect(late.take(.time) == "give up, leave, refused")
        var missing = try Story(refusal: Self.down)
        #expect(missing.take(.missing) == "leave, refused")
        var begun = try Story(refusal: Self.down)
        #expect(begun.take([.begins, .complete]) == ["stop, end origin", "finish, leave"])
    }

    // MARK: Both

    /// What each event brings after another one, once both are asked.
    private static let pairs: [(first: Event, brings: String, then: [String])] = [
        (.time, "", single),
        (.head, "not kept, end read", over),
        (
            .failure, "kept, wait 3000",
            [
                "give up, leave, 404", "not kept, end read", "kept", "kept", "kept",
                "stop, end origin", "leave, 404", "leave, 404",
            ]
        ),
        (
            .end, "kept, wait 3000",
            [
                "give up, leave, ended", "not kept, end read", "kept", "kept", "kept",
                "stop, end origin", "leave, ended", "leave, ended",
            ]
        ),
        (
            .refusal, "kept, wait 3000",
            [
                "give up, leave, refused", "not kept, end read", "kept", "kept", "kept",
                "stop, end origin", "leave, refused", "leave, refused",
            ]
        ),
        (
            .begins, "stop, end origin",
            ["", "not kept", "not kept", "not kept", "kept", "", "finish, leave", "resume"]
        ),
        (.complete, "leave", over),
        (.missing, "leave", over),
    ]

    /// What each event brings at first.
    private static let single = [
        "", "not kept, end read", "kept, wait 3000", "kept, wait 3000", "kept, wait 3000",
        "stop, end origin", "leave", "leave",
    ]

    /// What each event brings to a race that is over.
    private static let over = ["", "not kept", "not kept", "not kept", "not kept", "", "", ""]

    @Test func `each pair of events has one outcome, in either order`() throws {
        let firsts = Self.pairs.map { $0.first }
        #expect(firsts == Event.allCases)
        for row in Self.pairs {
            for (second, brings) in zip(Event.allCases, row.then) {
                var story = try Story()
                story.take(.time)
                let told = story.take([row.first, second])
                #expect(told == [row.brings, brings], "\(row.first), then \(second)")
            }
            #expect(row.then.count == Event.allCases.count)
        }
    }

    @Test func `a failure whose transfer has ended is handled with its end`() throws {
        var story = try Story()
        let told = story.take([.time, .failure, .end, .missing])
        #expect(told == ["hedge", "kept, wait 3000", "kept", "leave, 404 and end"])
    }

    @Test func `an origin that is known to be down is the answer, whatever else it sent`() throws {
        for events: [Event] in [
            [.failure, .refusal], [.failure, .end, .refusal], [.refusal, .failure],
            [.refusal, .end], [.refusal, .failure, .end],
        ] {
            var story = try Story()
            story.take(.time)
            _ = story.take(events)
            #expect(story.take(.missing) == "leave, refused", "\(events)")
        }
    }

    @Test func `an origin that answers after all wins although it counted as down`() throws {
        var story = try Story()
        let told = story.take([.time, .refusal, .head, .time])
        #expect(told == ["hedge", "kept, wait 3000", "not kept, end read", ""])
    }

    // MARK: Answers

    @Test(arguments: [400, 401, 403, 404, 408, 410, 425, 429, 451, 500, 503, 599] as [UInt16])
    func `an error waits, since the second level may have what is wanted`(_ status: UInt16) {
        #expect(SharedRace.mayBeSpared(HTTPStatus(rawValue: status)))
    }

    @Test(arguments: [200, 204, 206, 304, 416] as [UInt16])
    func `a usable answer of the origin wins`(_ status: UInt16) {
        #expect(!SharedRace.mayBeSpared(HTTPStatus(rawValue: status)))
    }
}
