import Posix
import Testing
import URISyntax

@testable import TimeShifting

/// What the end of a recording that waits does again at each attempt.
@Suite struct EndingAttemptsTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: seconds * 1_000_000_000)
    }

    private func list(
        _ name: String, _ text: String = "#EXTM3U\n"
    ) throws -> RecordingPlaylists.Finished {
        RecordingPlaylists.Finished(
            url: try AbsoluteURL("http://h/\(name).m3u8"), bytes: Array(text.utf8), segments: 1,
            lost: 0, seconds: 2)
    }

    @Test func `an end that waits makes its lists again only after losses, and rarely`() throws {
        var attempts = EndingAttempts()
        let isFirst = attempts.areToBeMade(losses: 7, now: time(0))
        #expect(isFirst)
        attempts.note(made: [try list("a")], losses: 7, at: time(0))
        for seconds in [5, 10, 299, 300, 90_000] as [Int64] {
            #expect(!attempts.areToBeMade(losses: 7, now: time(seconds)))
        }
        #expect(!attempts.areToBeMade(losses: 8, now: time(299)))
        #expect(attempts.areToBeMade(losses: 8, now: time(300)))
        attempts.note(made: [try list("a")], losses: 8, at: time(300))
        #expect(!attempts.areToBeMade(losses: 8, now: time(90_000)))
    }

    @Test func `an end that has waited makes its lists once more if bytes were lost`() throws {
        var attempts = EndingAttempts()
        attempts.note(made: [try list("a")], losses: 7, at: time(0))
        // Writing the list has replaced that of the stream.
        #expect(!attempts.areOutdated(losses: 8))
        attempts.noteWait()
        #expect(!attempts.areOutdated(losses: 7))
        #expect(attempts.areOutdated(losses: 8))
        attempts.note(made: [try list("a")], losses: 8, at: time(5))
        #expect(!attempts.areOutdated(losses: 9))
        // As above, and the entry is read then.
        attempts.noteReplacement()
        attempts.noteWait()
        #expect(!attempts.areOutdated(losses: 9))
        #expect(attempts.areOutdated(losses: 10))
    }

    @Test func `each list is written once, unless it changes or another object replaces it`() throws
    {
        let (one, other) = (try list("a"), try list("b"))
        var stored: [AbsoluteURL: UInt64] = [:]
        var attempts = EndingAttempts()
        func left() -> [AbsoluteURL] { attempts.unwritten { stored[$0] }.map(\.url) }
        attempts.note(made: [one, other], losses: 0, at: time(0))
        #expect(left() == [one.url, other.url])
        stored[one.url] = 11
        attempts.note(written: one, as: 11)
        #expect(left() == [other.url])
        stored[other.url] = 12
        attempts.note(written: other, as: 12)
        #expect(left().isEmpty)
        // A player has had the stream's own list stored.
        stored[one.url] = 13
        #expect(left() == [one.url])
        stored[one.url] = 14
        attempts.note(written: one, as: 14)
        // A segment was lost.
        attempts.note(made: [one, try list("b", "#EXTM3U\n\n")], losses: 1, at: time(400))
        #expect(left() == [other.url])
    }

    @Test func `an origin that does not have the entry is asked ever more rarely`() {
        var attempts = EndingAttempts()
        let pauses = (0..<9).map { _ in attempts.pauseOfReading().inSeconds }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300])
    }
}
