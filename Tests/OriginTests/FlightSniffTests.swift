import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import URISyntax
import Upstream

/// What the first bytes of a body decide.
@Suite struct `First bytes of flights` {
    private func story(
        _ change: (inout Resource.Parts) -> Void
    ) -> FlightStory {
        var story = FlightStory(resource: FlightStory.resource(change))
        story.join(.head)
        story.start()
        return story
    }

    @Test func `a head is not passed on before the first bytes show the type`() {
        var story = story { $0.role = nil }
        story.beginning.sniffs = true
        story.whole(1_000_000)
        #expect(story.machine.isSniffing && story.told.isEmpty)
        let first = story.machine.sniff(Array("\r\n".utf8), isAtEnd: false)
        #expect(first == .undecided)
        let found = story.machine.sniff(Array("G@".utf8), isAtEnd: false)
        #expect(found == .media)
        story.perform(story.machine.sniffed(found, now: story.now))
        #expect(Array(story.told.values) == [.object])
    }

    @Test func `a page that a parent sends in place of media is asked for at the origin, once`() {
        var story = story { $0.role = .segment }
        story.beginning.sniffs = true
        story.whole(1_000_000)
        let found = story.machine.sniff(Array("<!DOCTYPE html><html>".utf8), isAtEnd: false)
        guard case .wrong(_, isPage: true) = found else {
            Issue.record("an HTML page is none of media: \(found)")
            return
        }
        story.perform(story.machine.startsPastParents() ?? [])
        #expect(story.transfer == .none && story.told.isEmpty)
        story.timer()
        #expect(story.sends == 2 && story.machine.omitted == .parents)
        story.whole(1_000_000)
        let isOver = story.machine.startsPastParents() == nil
        #expect(isOver)
    }

    @Test func `a playlist is passed on when it is complete`() {
        var story = story { $0.role = nil }
        story.beginning.sniffs = true
        story.whole(1_000_000)
        let found = story.machine.sniff(Array("#EXTM3U\n".utf8), isAtEnd: false)
        #expect(found == .newPlaylist && story.machine.isPlaylist)
        story.perform(story.machine.sniffed(found, now: story.now))
        #expect(story.told.isEmpty)
        story.bytes(1_000_000)
        story.end()
        #expect(Array(story.told.values) == [.object] && story.completed)
    }

    @Test func `a request that needs a playlist does not wait for the end of a film`() {
        var story = story { $0.role = nil }
        let early = story.join(.completion, needsPlaylist: true)
        story.beginning.sniffs = true
        story.whole(1_000_000)
        #expect(story.told.isEmpty)
        let found = story.machine.sniff(Array("G@".utf8), isAtEnd: false)
        story.perform(story.machine.sniffed(found, now: story.now))
        #expect(story.told[early] == .failure(.badGateway))
        let late = story.join(.completion, needsPlaylist: true)
        #expect(story.told[late] == .failure(.badGateway))
        // Whoever takes any body waits for its end.
        let other = story.join(.completion)
        #expect(story.told[other] == nil && story.machine.waiters.count == 1)
        story.bytes(1_000_000)
        story.end()
        #expect(story.told[other] == .object && story.broken.isEmpty)
    }

    @Test func `who needs a playlist gets the one that comes`() {
        var story = story { $0.role = nil }
        let early = story.join(.completion, needsPlaylist: true)
        story.beginning.sniffs = true
        story.whole(1_000_000)
        let found = story.machine.sniff(Array("#EXTM3U\n".utf8), isAtEnd: false)
        story.perform(story.machine.sniffed(found, now: story.now))
        let late = story.join(.completion, needsPlaylist: true)
        #expect(story.told.isEmpty)
        story.bytes(1_000_000)
        story.end()
        #expect(story.told[early] == .object && story.told[late] == .object)
    }

    @Test func `a page in place of a playlist is rejected`() {
        var story = story { $0.role = .playlist }
        story.beginning.sniffs = true
        story.whole(1_000_000)
        let found = story.machine.sniff(Array("<html>".utf8), isAtEnd: false)
        #expect(
            found
                == .wrong(
                    "expected a playlist, but the origin sent an HTML or XML page", isPage: true))
        story.perform(story.machine.sniffed(found, now: story.now))
        #expect(Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
    }

    @Test func `a page in place of a playlist is recognized also if it comes byte by byte`() {
        var story = story { $0.role = .playlist }
        story.beginning.sniffs = true
        story.whole(1_000_000)
        var found = [FlightMachine.Sniffed]()
        for byte in "\n<!-- 1 -->\n<html>".utf8 where found.last ?? .undecided == .undecided {
            found.append(story.machine.sniff([byte], isAtEnd: false))
        }
        #expect(
            found.count == 17
                && found.last
                    == .wrong(
                        "expected a playlist, but the origin sent an HTML or XML page",
                        isPage: true)
        )
    }

    @Test(arguments: [("ad.mp4", true), ("ad.mpg", true), ("AD.FLV?a=b", true), ("film", false)])
    func `a page in place of a file is rejected if the name is one of media`(
        _ name: String, _ isRejected: Bool
    ) throws {
        let url = try AbsoluteURL("http://origin.example/\(name)")
        for role in [ResourceRole.media, nil] {
            for (text, isPage) in [
                ("<html>", true), ("<tt xml:lang=\"\">", false), ("G@", false),
            ] {
                var story = story {
                    $0.role = role
                    $0.url = url
                }
                story.beginning.sniffs = true
                story.whole(1_000_000)
                let found = story.machine.sniff(Array(text.utf8), isAtEnd: true)
                story.perform(story.machine.sniffed(found, now: story.now))
                #expect(
                    Array(story.told.values)
                        == [isRejected && isPage ? .failure(.badGateway) : .object], "\(text)")
            }
        }
    }

    @Test(arguments: [true, false])
    func `a page is no new version of a file, whatever its name`(_ replacesFile: Bool) throws {
        let url = try AbsoluteURL("http://origin.example/film?id=3")
        var story = story {
            $0.role = nil
            $0.url = url
        }
        story.machine.replacesFile = replacesFile
        story.beginning.sniffs = true
        story.whole(1_000_000)
        let found = story.machine.sniff(Array("<!doctype html>".utf8), isAtEnd: false)
        #expect((found == .media) != replacesFile)
    }

    @Test func `the first bytes of a segment may look like an object`() {
        var story = story { $0.role = .segment }
        story.beginning.sniffs = true
        story.whole(1_000_000)
        let first = story.machine.sniff(Array("{\"a".utf8), isAtEnd: false)
        #expect(first == .undecided)
        let found = story.machine.sniff([0], isAtEnd: false)
        #expect(found == .media)
    }

    @Test func `a segment that breaks before its first byte is requested again as it was`() {
        var story = FlightStory(
            resource: FlightStory.resource { $0.role = .segment },
            wanted: .span(start: 0, end: 1_000))
        story.join(.head)
        story.start()
        story.beginning.sniffs = true
        story.part(0, 999, of: 9_000)
        #expect(story.machine.isSniffing)
        story.breaks()
        story.timer()
        #expect(story.attempt?.wanted == .span(start: 0, end: 1_000) && story.broken.isEmpty)
    }

    @Test(arguments: [ResourceRole.segment, .part, .initialization, .key, .subtitle, .image])
    func `a page in place of media is rejected, and media mislabelled as a page is not`(
        role: ResourceRole
    ) {
        for (text, isRejected) in [
            ("<html>", true), ("<!DOC", false), ("{\"error\":1}", role != .key), ("G@", false),
            ("#EXTM3U\n", false),
        ] {
            var story = story { $0.role = role }
            story.beginning.sniffs = true
            story.whole(1_000_000)
            let found = story.machine.sniff(Array(text.utf8), isAtEnd: true)
            story.perform(story.machine.sniffed(found, now: story.now))
            #expect(
                Array(story.told.values) == [isRejected ? .failure(.badGateway) : .object],
                "\(text)")
            if isRejected { story.checkEnd() }
        }
    }
}
