import Glibc
import HTTP
import Posix
import Testing
import URISyntax
import Upstream

@testable import Model

/// After which failures an origin is down.
@Suite struct OriginHealthTests {
    /// The state after one failure.
    private func state(after error: UpstreamError) throws -> OriginHealth.State {
        let health = OriginHealth()
        let origin = try AbsoluteURL("https://cdn.test/").origin
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        let failure = OriginHealth.Failure(
            origin: origin, error: error, silentSince: start, now: start + .seconds(5 as Int64))
        _ = health.failed(failure)
        return health.state(of: origin)
    }

    @Test(arguments: [UpstreamError.Kind.resolve, .proxy])
    func `an origin is down once a name server or a proxy gave no answer in time`(
        kind: UpstreamError.Kind
    ) throws {
        var error = UpstreamError(kind, host: "cdn.test")
        #expect(try state(after: error) == .suspected)
        error.isSilence = true
        #expect(try state(after: error) == .down)
    }

    @Test func `the refusal tells how long ago the silence began, not when it was noticed`() throws
    {
        let health = OriginHealth()
        let url = try AbsoluteURL("https://cdn.test/a.ts")
        let start = Monotonic(nanoseconds: 5_000_000_000_000)
        _ = health.failed(
            OriginHealth.Failure(
                origin: url.origin, error: UpstreamError(.connectTimeout, host: "cdn.test"),
                silentSince: start, now: start + .seconds(5 as Int64)))
        let mark = try #require(health.mark(of: url.origin))
        let failure = mark.refusal(of: url, now: start + .seconds(7 as Int64))
        #expect(failure.message.contains("has not answered for 7 s"))
        #expect(failure.redirectedOrigin == nil)
        let front = try AbsoluteURL("https://front.test/a.ts")
        #expect(mark.refusal(of: front, at: url, now: start).redirectedOrigin == url.origin)
    }

    @Test(
        arguments: [
            (.connect, 502), (.resolve, 502), (.connectTimeout, 504), (.firstByteTimeout, 504),
        ] as [(UpstreamError.Kind, UInt16)])
    func `requests that are not sent fail with the status of the one that failed`(
        kind: UpstreamError.Kind, status: UInt16
    ) throws {
        let mark = try mark(after: kind, answeredBefore: nil)
        let url = try AbsoluteURL("https://cdn.test/a.ts")
        let sent = ProxyFailure(UpstreamError(kind, host: "cdn.test"), subject: "a")
        #expect(sent.status.rawValue == status)
        #expect(mark.refusal(of: url, now: Self.start).status == sent.status)
        let list = mark.refusal(of: url, isList: true, now: Self.start)
        #expect(list.status.rawValue == 504)
    }

    @Test func `pages of other sites are not told that a name was looked up before`() throws {
        let url = try AbsoluteURL("https://cdn.test/a.ts")
        func told(
            _ kind: UpstreamError.Kind, answeredBefore seconds: Int64?
        ) throws -> ProxyFailure? {
            let mark = try mark(after: kind, answeredBefore: seconds)
            return mark.refusal(of: url, now: Self.start).toldToForeignPage
        }
        let sent = ProxyFailure(UpstreamError(.resolve, host: "cdn.test"), subject: "a")
        let unsent = try #require(try told(.resolve, answeredBefore: nil))
        #expect(unsent == sent.toldToForeignPage)
        #expect(try told(.connect, answeredBefore: nil) == nil)
        // The name of an origin that has answered is known.
        #expect(try told(.resolve, answeredBefore: 1) == nil)
    }

    // MARK: The return of an origin

    private static let start = Monotonic(nanoseconds: 5_000_000_000_000)

    /// The mark after one failure that took five seconds, of an origin that answered before.
    private func mark(
        after kind: UpstreamError.Kind, answeredBefore seconds: Int64?, received bytes: Int64 = 0
    ) throws -> OriginHealth.Mark {
        let health = OriginHealth()
        let origin = try AbsoluteURL("https://cdn.test/").origin
        if let seconds {
            _ = health.answered(origin, now: Self.start + .seconds(-seconds))
        }
        var error = UpstreamError(kind, host: "cdn.test")
        error.bytesReceived = bytes
        _ = health.failed(
            OriginHealth.Failure(
                origin: origin, error: error, silentSince: Self.start,
                now: Self.start + .seconds(5 as Int64), isProbe: true))
        return try #require(health.mark(of: origin))
    }

    @Test(arguments: [UpstreamError.Kind.connectTimeout, .firstByteTimeout, .stalled])
    func `an origin is awaited in the first 30 s of a silence, however long it was not asked`(
        kind: UpstreamError.Kind
    ) throws {
        for seconds: Int64 in [1, 3_600] {
            let mark = try mark(after: kind, answeredBefore: seconds)
            #expect(mark.isAwaited(now: Self.start + .milliseconds(29_999)))
            #expect(!mark.isAwaited(now: Self.start + .seconds(30 as Int64)))
        }
    }

    @Test func `the last byte of a body that broke counts as an answer`() throws {
        let mark = try mark(after: .stalled, answeredBefore: nil, received: 1)
        #expect(mark.isAwaited(now: Self.start + .milliseconds(29_999)))
        #expect(!mark.isAwaited(now: Self.start + .seconds(30 as Int64)))
    }

    @Test func `an origin that never answered, or refuses, is not awaited`() throws {
        let later = Self.start + .seconds(5 as Int64)
        #expect(try !mark(after: .connectTimeout, answeredBefore: nil).isAwaited(now: later))
        let refusing = try mark(after: .connect, answeredBefore: 1)
        #expect(!refusing.isSilent && !refusing.isAwaited(now: later))
    }

    @Test func `an origin that has answered, and whose name is not found any more, is awaited`()
        throws
    {
        for (answered, isAwaited) in [(true, true), (false, false)] {
            let health = OriginHealth()
            let origin = try AbsoluteURL("https://cdn.test/").origin
            if answered { _ = health.answered(origin, now: Self.start + .seconds(-90 as Int64)) }
            for wait: Int64 in [0, 200] {
                let time = Self.start + .milliseconds(wait)
                _ = health.failed(
                    OriginHealth.Failure(
                        origin: origin, error: UpstreamError(.resolve, host: "cdn.test"),
                        silentSince: time, now: time))
            }
            let mark = try #require(health.mark(of: origin))
            #expect(mark.state == .down)
            #expect(mark.isAwaited(now: Self.start + .seconds(1 as Int64)) == isAwaited)
        }
    }

    @Test func `an origin that falls silent after it has refused is awaited from then on`() throws {
        let health = OriginHealth()
        let origin = try AbsoluteURL("https://cdn.test/").origin
        _ = health.answered(origin, now: Self.start + .seconds(-1 as Int64))
        func fail(_ kind: UpstreamError.Kind, at seconds: Int64) {
            let time = Self.start + .seconds(seconds)
            _ = health.failed(
                OriginHealth.Failure(
                    origin: origin, error: UpstreamError(kind, host: "cdn.test"),
                    silentSince: time, now: time))
        }
        fail(.connect, at: 0)
        fail(.connect, at: 60)
        for second: Int64 in [70, 80] { fail(.resolve, at: second) }
        let mark = try #require(health.mark(of: origin))
        #expect(mark.isAwaited(now: Self.start + .seconds(99 as Int64)))
        #expect(!mark.isAwaited(now: Self.start + .seconds(100 as Int64)))
        #expect(mark.silentSince == Self.start)
    }

    @Test func `an origin to which there is no way is awaited, unlike one that refuses`() throws {
        let codes = [
            (ENETDOWN, true), (ENETUNREACH, true), (EHOSTUNREACH, true), (ECONNREFUSED, false),
        ]
        for (code, isAwaited) in codes {
            let health = OriginHealth()
            let origin = try AbsoluteURL("https://cdn.test/").origin
            _ = health.answered(origin, now: Self.start + .seconds(-1 as Int64))
            var error = UpstreamError(.connect, host: "cdn.test")
            error.systemCode = code
            for wait: Int64 in [0, 200] {
                let time = Self.start + .milliseconds(wait)
                _ = health.failed(
                    OriginHealth.Failure(
                        origin: origin, error: error, silentSince: time, now: time))
            }
            let mark = try #require(health.mark(of: origin))
            #expect(mark.state == .down && mark.isQuick)
            #expect(mark.isAwaited(now: Self.start + .seconds(1 as Int64)) == isAwaited)
        }
    }
}
