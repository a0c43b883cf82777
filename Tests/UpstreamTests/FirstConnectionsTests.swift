import Testing
import URISyntax

@testable import Upstream

@Suite struct `First connections` {
    private static let origin = Origin(scheme: .https, host: "h.test", port: 443)

    private static func turn(
        of id: UInt64, in lane: Lane = .playback, isUnknown: Bool = true, isEarly: Bool = false,
        _ first: inout FirstConnections
    ) -> FirstConnections.Turn {
        first.turn(of: id, in: lane, to: origin, isUnknown: isUnknown, isEarly: isEarly)
    }

    @Test func `transfers to an unknown origin wait for the first one until its connection ends`() {
        var first = FirstConnections()
        let turns = (UInt64(1)...3).map { Self.turn(of: $0, &first) }
        #expect(turns == [.goesFirst, .waits, .waits])
        let isEndedByOther = first.end(of: Self.origin, by: 2)
        #expect(!isEndedByOther && !first.isEmpty && !first.hasReleased)
        let isEnded = first.end(of: Self.origin, by: 1)
        #expect(isEnded && first.isEmpty && first.hasReleased)
        let released = first.takeReleased()
        #expect(released == [2, 3] && !first.hasReleased)
    }

    @Test func `a scout that nobody waits for releases nobody`() {
        var first = FirstConnections()
        _ = Self.turn(of: 1, &first)
        let hasReleased = first.end(of: Self.origin, by: 1)
        #expect(!hasReleased && first.isEmpty && !first.hasReleased)
    }

    @Test func `no transfer waits for a scout once the version of its origin is known`() {
        var first = FirstConnections()
        let turns = [
            Self.turn(of: 1, &first), Self.turn(of: 2, isUnknown: false, &first),
            Self.turn(of: 3, &first),
        ]
        #expect(turns == [.goesFirst, .goes, .waits])
    }

    @Test func `one transfer waits for an early connection to a known origin, and no playlist`() {
        var first = FirstConnections()
        let turns = [
            Self.turn(of: 1, isUnknown: false, isEarly: true, &first),
            Self.turn(of: 2, in: .express, isUnknown: false, &first),
            Self.turn(of: 3, isUnknown: false, &first),
            Self.turn(of: 4, isUnknown: false, &first),
        ]
        #expect(turns == [.goesFirst, .goes, .waits, .goes])
    }

    @Test func `all but playlists wait for an early connection to an unknown origin`() {
        var first = FirstConnections()
        let turns = [
            Self.turn(of: 1, isEarly: true, &first), Self.turn(of: 2, in: .express, &first),
            Self.turn(of: 3, &first), Self.turn(of: 4, &first),
        ]
        #expect(turns == [.goesFirst, .goes, .waits, .waits])
    }

    @Test func `the version of an origin is what it showed last`() {
        var versions = OriginVersions()
        #expect(!versions.isKnown(Self.origin) && !versions.isMultiplexing(Self.origin))
        versions.note(Self.origin, isMultiplexing: true)
        #expect(versions.isKnown(Self.origin) && versions.isMultiplexing(Self.origin))
        versions.note(Self.origin, isMultiplexing: false)
        #expect(versions.isKnown(Self.origin) && !versions.isMultiplexing(Self.origin))
    }

    @Test func `no more than 1024 versions are remembered`() {
        func origin(_ number: Int) -> Origin {
            Origin(scheme: .https, host: "h\(number).test", port: 443)
        }
        var versions = OriginVersions()
        for number in 0...1024 { versions.note(origin(number), isMultiplexing: true) }
        let known = (0...1024).filter { versions.isKnown(origin($0)) }
        let multiplexing = (0...1024).filter { versions.isMultiplexing(origin($0)) }
        #expect(known == [1024] && multiplexing == [1024])
    }
}
