import Posix
import Testing
import URISyntax

@testable import Upstream

struct WindowSharesTests {
    private let players = PathUse(
        address: .init(bytes: [10, 0, 0, 1], port: 80), purpose: .players)

    private func connection(_ port: UInt16) -> UpstreamClient.Connection {
        .init(origin: Origin(scheme: .http, host: "10.0.0.1", port: 80), localPort: port)
    }

    @Test func `a response that is about to begin keeps its share for the time of a round trip`() {
        let (a, b) = (connection(1), connection(2))
        var shares = WindowShares()
        #expect(shares.count(of: players) == 1)
        shares.note(bodies: [players: [a, b]], at: 0)
        #expect(shares.count(of: players) == 2)
        shares.note(request: b, for: players, within: 0.08, at: 1)
        shares.note(bodies: [players: [a]], at: 1.05)
        #expect(shares.count(of: players) == 2)
        shares.note(bodies: [players: [a]], at: 1.1)
        #expect(shares.count(of: players) == 1)
    }

    @Test func `the time between two notes counts for uses that had bodies at both`() {
        let a = connection(1)
        let background = PathUse(address: players.address, purpose: .background)
        var shares = WindowShares()
        shares.note(bodies: [players: [a]], at: 1)
        #expect(shares.pause(of: players) == nil)
        shares.note(bodies: [players: [a], background: [a]], at: 1.25)
        #expect(shares.pause(of: players) == 0.25)
        #expect(shares.pause(of: background) == nil)
        // A tick without bodies, then the next response.
        shares.note(bodies: [:], at: 1.5)
        shares.note(bodies: [players: [a]], at: 1.75)
        #expect(shares.pause(of: players) == nil)
    }

    @Test func `a request counts before its response, and once`() {
        let (a, b) = (connection(1), connection(2))
        var shares = WindowShares()
        shares.note(bodies: [players: [a]], at: 0)
        shares.note(request: b, for: players, within: 1, at: 0.1)
        shares.note(request: b, for: players, within: 1, at: 0.2)
        #expect(shares.count(of: players) == 2)
        shares.note(bodies: [players: [a, b]], at: 0.3)
        #expect(shares.count(of: players) == 2)
        shares.note(bodies: [players: [a]], at: 0.4)
        #expect(shares.count(of: players) == 1, "the body of b has ended")
    }

    @Test func `requests share a window among themselves, and not with another use`() {
        let (a, b) = (connection(1), connection(2))
        let background = PathUse(address: players.address, purpose: .background)
        var shares = WindowShares()
        shares.note(request: a, for: players, within: 1, at: 0)
        shares.note(bodies: [background: [b]], at: 0.1)
        shares.note(request: b, for: players, within: 1, at: 0.2)
        #expect(shares.count(of: players) == 2)
        #expect(shares.count(of: background) == 1)
    }
}
