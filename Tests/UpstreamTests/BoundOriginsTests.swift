import Posix
import Testing
import URISyntax

@testable import Upstream

struct BoundOriginsTests {
    private static func at(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: seconds * 1_000_000_000)
    }

    private let film = Origin(scheme: .http, host: "film.test", port: 80)
    private let other = Origin(scheme: .http, host: "other.test", port: 80)

    @Test func `an origin counts while its own windows are bounded, and for a time after`() {
        var origins = BoundOrigins(life: .seconds(12 as Int64))
        origins.note(film, at: Self.at(1))
        #expect(origins.contains(film, at: Self.at(12)))
        #expect(!origins.contains(other, at: Self.at(1)))
        #expect(!origins.contains(film, at: Self.at(13)))
        origins.note(film, at: Self.at(14))
        #expect(origins.contains(film, at: Self.at(15)))
        origins.removeAll()
        #expect(!origins.contains(film, at: Self.at(15)))
    }

    @Test func `the set is limited, and keeps the latest origin`() {
        var origins = BoundOrigins(life: .seconds(12 as Int64))
        let all = (0...256).map { Origin(scheme: .http, host: "h\($0).test", port: 80) }
        for origin in all { origins.note(origin, at: Self.at(1)) }
        #expect(all.count { origins.contains($0, at: Self.at(1)) } == 1)
        #expect(origins.contains(all[256], at: Self.at(1)))
    }
}
