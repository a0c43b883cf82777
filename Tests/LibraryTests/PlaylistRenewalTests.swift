import HTTP
import Posix
import Testing

@testable import Library

/// When a download reads its playlists anew after a refusal.
@Suite struct PlaylistRenewalTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + .seconds(seconds)
    }

    /// Whether refusals, each with the pieces stored by then and its second, renew the playlists.
    ///
    /// Each refuses another piece.
    private func renewals(
        _ renewal: inout PlaylistRenewal, _ status: HTTPStatus?, _ refusals: [(Int, Int64)]
    ) -> [Bool] {
        refusals.enumerated().map { piece, refusal in
            renewal.begins(
                after: status, of: piece, stored: refusal.0, now: time(refusal.1))
        }
    }

    @Test(arguments: [401, 403, 404, 410] as [UInt16])
    func `the first refusal of a run renews the playlists`(status: UInt16) {
        var renewal = PlaylistRenewal()
        let made = renewals(&renewal, HTTPStatus(rawValue: status), [(0, 0), (0, 3_600)])
        #expect(made == [true, false])
    }

    @Test(arguments: [nil, 400, 408, 416, 429, 500, 503] as [UInt16?])
    func `other answers do not renew the playlist`(status: UInt16?) {
        var renewal = PlaylistRenewal()
        let found = status.map { HTTPStatus(rawValue: $0) }
        #expect(renewals(&renewal, found, [(0, 0)]) == [false])
    }

    @Test func `a later refusal does only with further pieces`() {
        var renewal = PlaylistRenewal()
        renewal.begin(stored: 0, now: time(0))
        let made = renewals(&renewal, .forbidden, [(0, 3), (5, 3), (5, 6), (6, 9)])
        #expect(made == [false, true, false, true])
    }

    @Test func `two readings are two seconds apart`() {
        var renewal = PlaylistRenewal()
        renewal.begin(stored: 0, now: time(0))
        #expect(renewals(&renewal, .forbidden, [(5, 1)]) == [true])
        #expect(!renewal.isDue(at: time(1)))
        #expect(renewal.isDue(at: time(2)))
    }

    @Test func `a piece that was refused before the last reading causes no other one`() {
        var renewal = PlaylistRenewal()
        renewal.begin(stored: 0, refused: [6, 7, 9], now: time(0))
        let begins = [7, 8].map {
            renewal.begins(after: .forbidden, of: $0, stored: 5, now: time(5))
        }
        #expect(begins == [false, true])
    }

    @Test func `after a reading that has not helped, the next one follows after a minute`() {
        var renewal = PlaylistRenewal()
        // Every second piece is refused for ever; each reading requests all of them again.
        var readings: [Int64] = []
        var refused: [Int] = []
        for second in 0..<200 as Range<Int64> {
            refused.append(Int(second) * 2)
            let cause = refused.first {
                renewal.begins(after: .forbidden, of: $0, stored: $0, now: time(second))
            }
            guard let cause else { continue }
            readings.append(second)
            renewal.begin(stored: cause, refused: Set(refused), now: time(second))
        }
        #expect(readings == [0, 60, 120, 180])
    }

    @Test func `a missing piece causes another reading only after a minute`() {
        var renewal = PlaylistRenewal()
        renewal.begin(stored: 0, now: time(0))
        let made = renewals(&renewal, .notFound, [(5, 59), (5, 60)])
        #expect(made == [false, true])
    }

    @Test func `an origin that refuses is asked a bounded number of times`() {
        var renewal = PlaylistRenewal()
        let refusals = (0..<10_000).map { ($0 % 20, Int64($0) * 61) }
        #expect(renewals(&renewal, .forbidden, refusals).count { $0 } <= 20)
    }
}
