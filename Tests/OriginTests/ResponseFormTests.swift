import CachePolicy
import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Testing
import URISyntax
import Upstream

/// The form in which responses are stored.
@Suite struct ResponseFormTests {
    private let received = WallTime(seconds: 1_700_000_000)

    private func form(
        _ source: ResponseForm.Source = .origin, isPlaylist: Bool = false,
        _ change: (inout Resource.Parts) -> Void = { _ in }
    ) -> ResponseForm {
        ResponseForm(
            resource: FlightStory.resource(change), isPlaylist: isPlaylist, source: source,
            requestTime: received, responseTime: received,
            hasViewerCookie: true)
    }

    private func head(
        _ status: HTTPStatus = .ok, _ fields: [(FieldName, String)] = []
    ) throws -> TransferHead {
        var kept = Fields()
        for (name, value) in fields { kept.append(name, value) }
        return TransferHead(
            status: status, kept: kept, finalURL: try AbsoluteURL("http://a:b@cdn.test/x.ts"))
    }

    @Test func `a part is stored as a part of the whole, unless it is opaque`() throws {
        let part = try head(.partialContent, [(.contentRange, "bytes 0-9/100")])
        let mounted = form { $0.kind = .shared }
        let whole = mounted.stored(part, .inPlace)
        #expect(whole.status == .ok && !whole.fields.contains(.contentRange))
        let opaque = mounted.stored(part, .opaque)
        #expect(opaque.status == .partialContent && opaque.fields.contains(.contentRange))
        #expect(form().stored(part, .inPlace).finalURL == "http://cdn.test/x.ts")
    }

    @Test(
        arguments: [
            (nil, true), ("private, max-age=60", true), ("max-age=60", true),
            ("public, private", true), ("public", false), ("s-maxage=60", false),
            ("must-revalidate", false),
        ] as [(String?, Bool)])
    func `media is marked with the credentials of its request unless its origin shares it`(
        _ control: String?, isMarked: Bool
    ) throws {
        let head = try head(.ok, control.map { [(FieldName.cacheControl, $0)] } ?? [])
        for role in [ResourceRole.key, .segment, .json] {
            var form = form { $0.role = role }
            form.user = "0123456789ab"
            let user = isMarked || role == .key ? form.user : nil
            #expect(form.stored(head, .inPlace).user == user)
            form.user = nil
            #expect(form.stored(head, .inPlace).user == nil)
        }
    }

    @Test func `what has the credentials in its key is not marked with them`() throws {
        var list = form(isPlaylist: true)
        list.user = "0123456789ab"
        #expect(list.stored(try head(), .inPlace).user == nil)
        for audience in [CacheKey.Audience.credentials("a"), .session("a"), .mount(.shared)] {
            var form = form { $0.cacheKey.audience = audience }
            form.user = "0123456789ab"
            #expect(form.stored(try head(), .inPlace).user == nil)
        }
    }

    @Test func `a response without Date gets one under a mount`() throws {
        let stored = form { $0.kind = .shared }.stored(try head(), .inPlace)
        #expect(stored.fields.first(.date) == HTTPDate.format(received.seconds))
        #expect(form().stored(try head(), .inPlace).fields.first(.date) == nil)
    }

    @Test(arguments: [(false, 4), (true, 0)] as [(Bool, Int64)])
    func `the time that an origin holds a request is no age of its response`(
        isHeld: Bool, age: Int64
    ) throws {
        let form = ResponseForm(
            resource: FlightStory.resource(), isPlaylist: true, source: .origin,
            requestTime: WallTime(seconds: received.seconds - 4), responseTime: received,
            isHeld: isHeld, hasViewerCookie: false)
        let date = HTTPDate.format(received.seconds)
        for stated in [0, 2] as [Int64] {
            let head = try head(.ok, [(.date, date), (.age, String(stated))])
            let rules = ReuseRules(form.stored(head, .inPlace), kind: .private)
            #expect(rules.age(at: received) == stated + age)
        }
    }

    @Test func `Cache-Status names the shared store, or what a parent said`() throws {
        let said = try head(.ok, [(.cacheStatus, "up; hit")])
        #expect(form().stored(said, .inPlace).fields.first(.cacheStatus) == nil)
        #expect(form(.parent).stored(said, .inPlace).fields.first(.cacheStatus) == "up; hit")
        #expect(
            form(.sharedStore).stored(said, .inPlace).fields.first(.cacheStatus)
                == "shared-store; hit")
        let long = try head(.ok, [(.cacheStatus, String(repeating: "a", count: 1_025))])
        #expect(form(.parent).stored(long, .inPlace).fields.first(.cacheStatus) == nil)
    }

    @Test func `first bytes decide the type unless name and type agree on media`() throws {
        func isSniffed(
            _ type: String, from start: Int64 = 0, isPlaylist: Bool = false,
            _ change: (inout Resource.Parts) -> Void = { _ in }
        ) throws -> Bool {
            let form = form(isPlaylist: isPlaylist, change)
            return form.isSniffed(
                form.stored(try head(.ok, [(.contentType, type)]), .inPlace), from: start)
        }
        #expect(try isSniffed("text/plain") { $0.role = nil })
        #expect(try !isSniffed("Video/MP2T; a=b") { $0.role = nil })
        #expect(try isSniffed("audio/mpegurl") { $0.role = nil })
        #expect(try !isSniffed("text/plain", from: 1) { $0.role = nil })
        // An entry of a channel list.
        #expect(try isSniffed("text/plain") { $0.role = .media })
        #expect(try !isSniffed("video/mp2t") { $0.role = .media })
        // Pages of captive portals come with any type.
        #expect(try isSniffed("video/mp2t") { $0.role = .segment })
        #expect(try !isSniffed("video/mp2t", from: 1) { $0.role = .segment })
        #expect(
            try !isSniffed("text/html") {
                $0.role = .segment
                $0.kind = .shared
            })
        #expect(try isSniffed("video/mp2t", isPlaylist: true) { $0.role = .playlist })
    }

    @Test(arguments: [
        ("bytes", true), ("none", false), ("x, bytes", true), ("xbytes", false),
    ])
    func `Accept-Ranges states support for ranges of bytes`(value: String, isAccepted: Bool) {
        var fields = Fields()
        fields.append(.acceptRanges, value)
        #expect(ResponseForm.acceptsRanges(fields) == isAccepted)
        #expect(!ResponseForm.acceptsRanges(Fields()))
    }
}
