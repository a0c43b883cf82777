import CachePolicy
import HLS
import HTTP
import Posix
import Routing
import Testing
import URISyntax

@testable import Model

/// Resources that are derived from others.
@Suite struct ResourceTests {
    /// One that differs from `plain` in every stored property.
    private func full() throws -> Resource {
        var fields = Fields()
        fields.append(.userAgent, "player")
        let users = MountUsers()
        users.replace([try Mount("/demo/=https://ann:1@cdn.test/")])
        let ofMount = try AbsoluteURL("https://mount*%2Fdemo%2F@cdn.test/")
        return Resource(
            .init(
                url: try AbsoluteURL("https://cdn.test/full.ts"),
                cacheKey: CacheKey(url: "https://cdn.test/full.ts"),
                session: Session(startingAt: try AbsoluteURL("https://cdn.test/full.m3u8")),
                role: .segment, policy: .rfc, mayStore: false, forwardedFields: fields,
                isMounted: true, kind: .shared, mount: try Mount("/demo/=https://cdn.test/"),
                isVerbatim: true,
                live: LiveTerms(longestHold: .seconds(1 as Int64)),
                mountUser: users.user(of: ofMount)))
    }

    private func plain() throws -> Resource {
        Resource(
            .init(
                url: try AbsoluteURL("https://cdn.test/plain"),
                cacheKey: CacheKey(url: "https://cdn.test/plain"),
                session: Session(startingAt: try AbsoluteURL("https://cdn.test/plain.m3u8")),
                policy: .media, forwardedFields: Fields()))
    }

    private func description(_ value: Any) -> String {
        type(of: value) is AnyClass
            ? "\(ObjectIdentifier(value as AnyObject))" : String(reflecting: value)
    }

    @Test func `a resource derived from another keeps every part that is not changed`() throws {
        let (full, plain) = (try full(), try plain())
        let copy = full.changing { _ in }
        let parts = zip(Mirror(reflecting: full).children, Mirror(reflecting: copy).children)
        for ((kept, copied), other) in zip(parts, Mirror(reflecting: plain).children) {
            let name = kept.label ?? ""
            #expect(description(kept.value) == description(copied.value), "\(name) is lost")
            #expect(
                description(kept.value) != description(other.value),
                "give \(name) a value of its own in this test")
        }
    }

    @Test(
        arguments: [
            (.segment, true), (.json, true), (nil, true), (.key, false), (.playlist, false),
        ] as [(ResourceRole?, Bool)])
    func `the own copy of a session keeps the epoch of media`(
        _ role: ResourceRole?, keepsEpoch: Bool
    ) throws {
        let later = try plain().changing {
            $0.role = role
            $0.cacheKey.epoch = Epoch(number: 2)
        }
        let own = later.ownCopy
        #expect(own.epoch == (keepsEpoch ? later.epoch : .first))
        #expect(own.isKept(for: own.session) && own.ownCopy.cacheKey == own.cacheKey)
        #expect(!later.isKept(for: own.session))
    }

    /// A playlist that is requested with these credentials, or without.
    private func list(isMounted: Bool, _ credentials: String?) throws -> Resource {
        var fields = Fields()
        if let credentials { fields.append(.authorization, credentials) }
        return try plain().changing {
            $0.isMounted = isMounted
            $0.forwardedFields = fields
        }
    }

    @Test func `requests of other clients are one question unless credentials tell them apart`()
        throws
    {
        let mounted = try ["Basic a", "Basic b", nil].map { try list(isMounted: true, $0) }
        for one in mounted {
            for other in mounted {
                #expect(one.isOneQuestion(with: other) == (one === other))
            }
        }
        #expect(mounted[2].isOneQuestion(with: try list(isMounted: true, nil)))
        let playback = try list(isMounted: false, nil)
        for one in mounted {
            #expect(!one.isOneQuestion(with: playback) && !playback.isOneQuestion(with: one))
            // The head decides who gets it.
            let object = one.changing { $0.kind = .shared }
            #expect(object.isOneQuestion(with: mounted[0].changing { $0.kind = .shared }))
        }
        #expect(playback.isOneQuestion(with: try plain()))
    }
}
