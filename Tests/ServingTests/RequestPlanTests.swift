import CachePolicy
import HTTP
import HLS
@testable import Model
@testable import Serving
import Testing

/// Circumstances, and the expected plan.
struct PlanCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let stage: PlanStage
    let plan: RequestPlan

    init(_ name: String, _ stage: PlanStage, _ plan: RequestPlan) {
        testDescription = name
        self.stage = stage
        self.plan = plan
    }
}

/// The plan of a request.
@Suite struct RequestPlanTests {
    private func outcome(_ stage: PlanStage) throws -> RequestPlan { try stage.outcome().plan }

    private static let hit = RequestPlan.serve(Disposition.hit, ttl: nil)
    /// A stale response with its remaining freshness in seconds.
    private static func stale(_ ttl: Int64?) -> RequestPlan { .serve(.staleOnError, ttl: ttl) }
    private static let offline = RequestPlan.serve(.offline, ttl: nil)
    private static func fetch(_ reason: RequestPlan.FetchReason) -> RequestPlan {
        .fetch(reason, .whole)
    }

    static let playback: [PlanCase] = [
        PlanCase("a stored segment", PlanStage(), hit),
        PlanCase("nothing stored", PlanStage(isStored: false), fetch(.nothingStored)),
        PlanCase(
            "nothing stored, policy offline", PlanStage(policy: .offline, isStored: false),
            .refuse(.notStored)),
        PlanCase(
            "nothing stored at a URL that was replaced",
            PlanStage(isStored: false, name: .init(hasSuccessor: true)), .followSuccessor),
        PlanCase(
            "nothing stored under a name given away",
            PlanStage(isStored: false, name: .init(isNameReused: true)), .refuse(.nameGivenAway)),
        PlanCase(
            "a segment of a former epoch", PlanStage(isOfFormerEpoch: true), .revalidate(.epoch)),
        PlanCase(
            "policy refresh", PlanStage(policy: .refresh), .revalidate(.refreshPolicy)),
        PlanCase(
            "policy rfc, expired",
            PlanStage(policy: .rfc, head: ["Cache-Control": "max-age=5"]), .revalidate(.expired)),
        PlanCase(
            "policy rfc, expired, origin suspected",
            PlanStage(policy: .rfc, head: ["Cache-Control": "max-age=5"], origin: .suspected),
            stale(-95)),
        PlanCase(
            "policy rfc, stale-while-revalidate",
            PlanStage(
                policy: .rfc,
                head: ["Cache-Control": "max-age=95, stale-while-revalidate=60"]),
            .serve(.staleWhileRevalidate, ttl: -5)),
        PlanCase(
            "a key of a live session",
            PlanStage(role: .key, head: ["Cache-Control": "max-age=5"], isLiveSession: true),
            .revalidate(.expired)),
        PlanCase(
            "a key of a title", PlanStage(role: .key, head: ["Cache-Control": "max-age=5"]), hit),
        PlanCase(
            "another viewer's key", PlanStage(role: .key, belongsToAnotherViewer: true),
            .fetchOwnCopy),
        PlanCase(
            "another viewer's key, origin down",
            PlanStage(role: .key, origin: .down, hasDown: true, belongsToAnotherViewer: true), hit),
        PlanCase(
            "another viewer's key, policy offline",
            PlanStage(policy: .offline, role: .key, belongsToAnotherViewer: true), hit),
        PlanCase("what shared credentials have opened", PlanStage(user: "a"), hit),
        PlanCase(
            "what a user's credentials have opened, for a page",
            PlanStage(user: "a", belongsToAnotherViewer: true), .fetchOwnCopy),
        PlanCase(
            "the same, origin down",
            PlanStage(user: "a", origin: .down, hasDown: true, belongsToAnotherViewer: true),
            .fetchOwnCopy),
        PlanCase(
            "the same, policy offline",
            PlanStage(policy: .offline, user: "a", belongsToAnotherViewer: true), .fetchOwnCopy),
        PlanCase(
            "the same, JSON of HLS, policy offline",
            PlanStage(policy: .offline, role: .json, user: "a", belongsToAnotherViewer: true),
            .fetchOwnCopy),
        PlanCase(
            "the same, under a name given away",
            PlanStage(user: "a", belongsToAnotherViewer: true, name: .init(isNameReused: true)),
            .refuse(.nameGivenAway)),
        PlanCase(
            "the same, after a failure",
            PlanStage(user: "a", belongsToAnotherViewer: true, failure: silent),
            .refuse(.failure)),
        PlanCase(
            "an object in a playlist's place", PlanStage(role: .playlist),
            fetch(.unusable(.noPlaylist))),
        PlanCase(
            "half a decoded body", PlanStage(role: nil, isComplete: false, total: nil),
            fetch(.unusable(.halfDecoded))),
        PlanCase(
            "JSON of HLS that was opened as an entry",
            PlanStage(role: nil, head: ["Cache-Control": "max-age=5"], entry: .text),
            .revalidate(.expired)),
    ]

    static let playlists: [PlanCase] = [
        PlanCase("a stored list", .list(), hit),
        PlanCase("half a list", .list { $0.isComplete = false }, fetch(.unusable(.halfText))),
        PlanCase(
            "another viewer's list", .list { $0.belongsToAnotherViewer = true }, .fetchOwnCopy),
        PlanCase("a list of one client", .list { $0.isOfOneClient = true }, fetch(.notShared)),
        PlanCase(
            "a list of one client, policy offline",
            .list { ($0.isOfOneClient, $0.policy) = (true, .offline) }, .refuse(.notStored)),
        PlanCase("a list that cannot be read", .list { $0.text = .unreadable }, fetch(.unreadable)),
        PlanCase(
            "a list that cannot be read, policy offline",
            .list {
                $0.text = .unreadable
                $0.policy = .offline
            }, .refuse(.unreadable)),
        PlanCase("a live list of now", .live(age: 1), .serve(.hit, ttl: 2)),
        PlanCase("a live list of before", .live(age: 4), .revalidate(.live)),
        PlanCase("a blocking reload", .live(age: 1) { $0.isReload = true }, .awaitReload),
        PlanCase("a list that has just ended", .ended(age: 17), .serve(.hit, ttl: 1)),
        PlanCase("a list that ended before", .ended(age: 18), .revalidate(.ended)),
        PlanCase(
            "a pinned list that ended before", .ended(age: 18) { $0.isPinned = true },
            .serve(.hit, ttl: nil)),
        PlanCase(
            "a list that ended before, offline", .ended(age: 18) { $0.policy = .offline },
            .serve(.hit, ttl: nil)),
        PlanCase(
            "a list that ended before, while its origin is down",
            .ended(age: 100) {
                $0.origin = .down
                $0.hasDown = true
            }, .serve(.staleOnError, ttl: -82)),
        PlanCase(
            "a list that lacks something", .list { $0.mayLack = true }, hit),
        PlanCase(
            "a list that lacks something of an origin that proves to be down",
            .list {
                $0.mayLack = true
                $0.hasDown = true
                $0.form = .cut
            }, offline),
        PlanCase(
            "a list while an origin is down",
            .list {
                $0.hasDown = true
                $0.form = .cut
            }, offline),
        PlanCase(
            "a whole list while an origin is down", .list { $0.hasDown = true }, hit),
        PlanCase(
            "a list of which nothing is kept, policy offline",
            .list {
                $0.policy = .offline
                $0.form = .nothing
            }, .refuse(.nothingKept)),
        PlanCase(
            "a list of which nothing is kept, origin down",
            .list {
                $0.origin = .down
                $0.hasDown = true
                $0.form = .nothing
            }, .refuse(.nothingKeptOfSilentOrigin)),
        PlanCase(
            "a live list while its origin is down",
            .live(age: 10) {
                $0.origin = .down
                $0.hasDown = true
            }, stale(-7)),
        PlanCase(
            "a live list long after its origin went down",
            .live(age: 100) {
                $0.origin = .down
                $0.hasDown = true
                $0.form = .cut
            }, offline),
        PlanCase(
            "a live list while another origin is down",
            .live(age: 10) {
                $0.hasDown = true
                $0.form = .cut
            }, .revalidate(.live)),
    ]

    static let rules: [PlanCase] = [
        PlanCase("fresh", .mounted("max-age=600", age: 100), .serve(.hit, ttl: 500)),
        PlanCase("expired", .mounted("max-age=6", age: 100), .revalidate(.expired)),
        PlanCase(
            "nothing stored", .mounted("", age: 0) { $0.isStored = false }, fetch(.nothingStored)),
        PlanCase(
            "nothing stored, only-if-cached",
            .mounted("", age: 0, request: ["Cache-Control": "only-if-cached"]) {
                $0.isStored = false
            }, .refuse(.onlyIfCached)),
        PlanCase(
            "expired, only-if-cached",
            .mounted("max-age=6", age: 100, request: ["Cache-Control": "only-if-cached"]),
            .refuse(.onlyIfCached)),
        PlanCase(
            "a stale list, only-if-cached",
            .mounted("max-age=6", age: 100, request: ["Cache-Control": "only-if-cached"]) {
                $0.isPlaylist = true
            }, .refuse(.onlyIfCached)),
        PlanCase(
            "a part, only-if-cached",
            .mounted("max-age=600", age: 1, request: ["Cache-Control": "only-if-cached"]) {
                $0.head.append(.etag, "\"v\"")
                $0.isComplete = false
                $0.holdsAsked = false
            }, .refuse(.onlyIfCached)),
        PlanCase(
            "no-store of the client",
            .mounted("max-age=600", age: 1, request: ["Cache-Control": "no-store"]),
            fetch(.requestNoStore)),
        PlanCase(
            "no-store of the client, policy offline",
            .mounted("max-age=600", age: 1, request: ["Cache-Control": "no-store"]) {
                $0.policy = .offline
            }, hit),
        PlanCase(
            "If-Match", .mounted("max-age=600", age: 1, request: ["If-Match": "\"v\""]),
            fetch(.clientConditions)),
        PlanCase(
            "other variants", .mounted("", age: 0) { $0.hasOtherVariants = true },
            fetch(.otherVariants)),
        PlanCase(
            "a part without a validator",
            .mounted("max-age=600", age: 1) {
                $0.isComplete = false
                $0.holdsAsked = false
            }, fetch(.partWithoutValidator)),
    ]

    private static let silent = RequestFacts.Failure(allowsStale: true)

    static let replies: [PlanCase] = [
        PlanCase("new", PlanStage(reply: .init()), .serve(.miss, ttl: nil)),
        PlanCase(
            "of a joined flight", PlanStage(reply: .init(isCollapsed: true)),
            .serve(.collapsed, ttl: nil)),
        PlanCase(
            "of a joined flight, another viewer's list",
            .list {
                $0.belongsToAnotherViewer = true
                $0.reply = .init(isCollapsed: true)
            }, .fetchOwnCopy),
        PlanCase(
            "of a joined flight with a user's credentials, for a page",
            PlanStage(user: "a", belongsToAnotherViewer: true, reply: .init(isCollapsed: true)),
            .fetchOwnCopy),
        PlanCase(
            "stored meanwhile with a user's credentials, for a page",
            PlanStage(user: "a", belongsToAnotherViewer: true, reply: .init(wasStored: true)),
            .fetchOwnCopy),
        PlanCase(
            "of a joined flight that may not be shared",
            .mounted("no-store", age: 0) {
                $0.mayShare = false
                $0.reply = .init(isCollapsed: true)
            }, fetch(.notShared)),
        PlanCase(
            "in place of what was stale", PlanStage(reply: .init(staleReason: .expired)),
            .serve(.refreshed(.expired), ttl: nil)),
        PlanCase(
            "not kept", PlanStage(reply: .init(notStored: .noStore)),
            .serve(.bypass(.noStore), ttl: nil)),
        PlanCase(
            "of a joined flight, not kept",
            PlanStage(reply: .init(isCollapsed: true, notStored: .noStore)),
            .serve(.bypass(.noStore, isCollapsed: true), ttl: nil)),
        PlanCase(
            "not kept, in place of what was stale",
            PlanStage(reply: .init(staleReason: .expired, notStored: .noStore)),
            .serve(.bypass(.noStore, over: .expired), ttl: nil)),
        PlanCase(
            "of a hole", PlanStage(reply: .init(wasPartlyStored: true)), .serve(.partial, ttl: nil)),
        PlanCase(
            "of a hole, of a joined flight",
            PlanStage(reply: .init(isCollapsed: true, wasPartlyStored: true)),
            .serve(.collapsed, ttl: nil)),
        PlanCase("stored meanwhile", PlanStage(reply: .init(wasStored: true)), hit),
        PlanCase(
            "304", PlanStage(reply: .init(isRevalidated: true, staleReason: .requestNoCache)),
            .serve(.revalidated(.requestNoCache), ttl: nil)),
        PlanCase(
            "what may be JSON of HLS", PlanStage(role: nil, entry: .open, reply: .init()),
            .fetchRest),
        PlanCase(
            "304 about a list that cannot be read",
            .list {
                $0.text = .unreadable
                $0.reply = .init(isRevalidated: true)
            }, .refuse(.unreadable)),
        PlanCase(
            "a failure, nothing stored", PlanStage(isStored: false, failure: silent),
            .refuse(.failure)),
        PlanCase(
            "silence of an origin that is awaited, nothing stored",
            PlanStage(isStored: false, failure: .init(allowsStale: true, mayAwaitReturn: true)),
            .awaitReturn),
        PlanCase(
            "silence of an origin that is awaited, something stored",
            PlanStage(failure: .init(allowsStale: true, mayAwaitReturn: true)), stale(nil)),
        PlanCase("a failure, something stored", PlanStage(failure: silent), stale(nil)),
        PlanCase(
            "a failure, a list of one client",
            .list { ($0.isOfOneClient, $0.failure) = (true, silent) }, .refuse(.failure)),
        PlanCase("a refusal of the origin", PlanStage(failure: .init()), .refuse(.failure)),
        PlanCase("a dead token", PlanStage(failure: .init(maySearch: true)), .findSuccessor),
        PlanCase(
            "a failed reload",
            .live(age: 10) {
                $0.isReload = true
                $0.failure = .init(allowsStale: true, isOfReload: true)
            }, .serveLater),
        PlanCase(
            "a failed reload by a player that has more than the list",
            .live(age: 10) {
                $0.isReload = true
                $0.awaited = (5, 3)
                $0.failure = .init(allowsStale: true, isOfReload: true)
            }, .refuse(.failure)),
        PlanCase(
            "a failure, a live list of before", .live(age: 10) { $0.failure = silent }, stale(-7)),
        PlanCase(
            "a failure, a live list of long ago", .live(age: 100) { $0.failure = silent },
            .refuse(.failure)),
        PlanCase(
            "a failure, a longer window",
            .live(age: 100) {
                $0.failure = silent
                $0.text = .readable(PlaylistFacts(isLive: true), isShifted: true)
            }, stale(-99)),
        PlanCase(
            "a failure that takes the origin down, a list",
            .list {
                $0.failure = silent
                $0.origin = .down
                $0.hasDown = true
                $0.form = .cut
            }, offline),
        PlanCase(
            "a failure, a list that ended before and turns out to be whole without another origin",
            .ended(age: 100) {
                $0.failure = silent
                $0.hasDown = true
                $0.mayLack = true
            }, stale(-82)),
        PlanCase(
            "a failure, a list that cannot be read",
            .list {
                $0.failure = silent
                $0.text = .unreadable
            }, .refuse(.failure)),
    ]

    @Test(arguments: playback) func `requests for playback have the expected plan`(
        _ given: PlanCase
    ) throws {
        #expect(try outcome(given.stage) == given.plan)
    }

    @Test(arguments: playlists) func `requests for playlists have the expected plan`(
        _ given: PlanCase
    ) throws {
        #expect(try outcome(given.stage) == given.plan)
    }

    @Test(arguments: rules) func `requests under a mount have the expected plan`(
        _ given: PlanCase
    ) throws {
        #expect(try outcome(given.stage) == given.plan)
    }

    @Test(arguments: replies) func `replies of the origin have the expected plan`(
        _ given: PlanCase
    ) throws {
        #expect(try outcome(given.stage) == given.plan)
    }

    @Test func `the tables contain every plan, every reason and every refusal`() {
        let plans = (Self.playback + Self.playlists + Self.rules + Self.replies).map(\.plan)
        #expect(
            Set(plans.map(\.name)) == [
                "serve", "serve-later", "revalidate", "fetch", "fetch-own-copy", "await-reload",
                "follow-successor", "find-successor", "fetch-rest", "await-return",
                "refuse",
            ])
        // Outcomes of parts belong to the plan of the body.
        let refusals = Refusal.allCases.filter {
            $0 != .partNotStored && $0 != .partOfSilentOrigin
        }
        for refusal in refusals {
            #expect(plans.contains(.refuse(refusal)), "\(refusal) is not reached")
        }
        for fault in StoredUse.Fault.allCases {
            #expect(plans.contains(Self.fetch(.unusable(fault))), "\(fault) is not reached")
        }
    }

    @Test func `the origin is confirmed only for lists that may lack something`() throws {
        #expect(try PlanStage.list().outcome().learned.contains(.originConfirmation) == false)
        let lacking = PlanStage.list { $0.mayLack = true }
        #expect(try lacking.outcome().learned.contains(.originConfirmation))
        let live = PlanStage.live(age: 1) { $0.mayLack = true }
        #expect(try live.outcome().learned.contains(.originConfirmation) == false)
    }

    @Test func `a hit of a segment looks up only the stored response and its epoch`() throws {
        #expect(try PlanStage().outcome().learned == [.stored, .epoch])
    }

    @Test func `only what a title needs in its middle waits for the return of its origin`() throws {
        let stages: [(stage: PlanStage, start: Int64, waits: Bool)] = [
            (PlanStage(), 0, true), (PlanStage(role: .key), 0, true),
            (PlanStage(role: .playlist), 0, false), (PlanStage(role: .json), 0, false),
            (PlanStage(role: nil), 0, false), (PlanStage(role: nil), 1, true),
            (PlanStage(policy: .offline), 0, false), (PlanStage(isReload: true), 0, false),
            (PlanStage(isOfChild: true), 0, false), (.mounted("max-age=1", age: 0), 1, false),
        ]
        for (stage, start, waits) in stages {
            #expect(try stage.resource().mayAwaitReturn(from: start) == waits)
        }
    }

    // MARK: What is asked for

    static let missing: [(ResourceRole?, String?, Wanted, Bool)] = [
        (.segment, nil, .whole, false),
        (.segment, "bytes=0-99", .span(start: 0, end: 100), false),
        (.segment, "bytes=100-", .span(start: 100, end: nil), false),
        (.segment, "bytes=-7", .suffix(7), false),
        (.segment, "bytes=1-2,5-6", .whole, false),
        (.playlist, "bytes=0-99", .whole, false),
        (.json, "bytes=0-99", .whole, false),
        (nil, "bytes=0-9", .span(start: 0, end: Int64(PlaylistDetector.prefixLength)), false),
        (nil, "bytes=5000-", .span(start: 0, end: Int64(PlaylistDetector.prefixLength)), true),
        (nil, "bytes=-7", .span(start: 0, end: Int64(PlaylistDetector.prefixLength)), true),
    ]

    @Test(arguments: missing)
    func `a missing resource is fetched as far as the request needs`(
        _ role: ResourceRole?, _ range: String?, _ wanted: Wanted, _ learnsTypeFirst: Bool
    ) throws {
        var stage = PlanStage(role: role, isStored: false)
        if let range { stage.range = ByteRangeSpec.parse(range) }
        let part = MissingPart(wanted: wanted, learnsTypeFirst: learnsTypeFirst)
        #expect(try outcome(stage) == .fetch(.nothingStored, part))
    }
}
