import Lookahead
import Testing
import URISyntax

@testable import Ahead

/// Which playlists are read for the planner.
@Suite struct ListReadingsTests {
    private var readings = ListReadings()
    private let id: ListID

    init() throws {
        id = ListID(session: 1, url: try AbsoluteURL("http://h/l.m3u8"))
    }

    @Test mutating func `each generation of a list is read once for all players`() {
        var read: [UInt64] = []
        for generation in [7, 7, 8, 8, 8, 9] as [UInt64] {
            guard !readings.isRead(id, generation, isKnown: true) else { continue }
            readings.note(id, generation)
            readings.notePlanned(id)
            read.append(generation)
        }
        #expect(read == [7, 8, 9])
    }

    @Test mutating func `a list that the planner has dropped is read again`() {
        readings.note(id, 7)
        // It was not for the planner, as a multivariant playlist.
        let isOther = readings.isRead(id, 7, isKnown: false)
        #expect(isOther)
        readings.notePlanned(id)
        let isRead = readings.isRead(id, 7, isKnown: true)
        #expect(isRead)
        let isDropped = !readings.isRead(id, 7, isKnown: false)
        #expect(isDropped)
    }

    @Test mutating func `a list is read again after look-ahead was off`() {
        readings.note(id, 7)
        readings.forget(id)
        // Nothing is passed on of what was not read.
        readings.notePlanned(id)
        let isRead = readings.isRead(id, 7, isKnown: true)
        #expect(!isRead)
    }

    @Test mutating func `a session's reading does not stand for that of another one`() {
        readings.note(id, 7)
        let other = ListID(session: 2, url: id.url)
        let isRead = readings.isRead(other, 7, isKnown: true)
        #expect(!isRead)
    }
}
