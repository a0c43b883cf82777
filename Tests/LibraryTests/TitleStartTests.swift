import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Routing
import Store
import Testing
import URISyntax

@testable import Library

/// The titles that a URL with headers names.
@Suite struct TitleStartTests {
    /// Stores a playlist under the first key of a session.
    private func keep(
        _ url: AbsoluteURL, of session: Session, on stage: TitleStage
    ) throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n"
        let body = Array(text.utf8)
        let head = StoredHead(
            status: .ok, fields: Fields(), requestTime: .now(), responseTime: .now(),
            finalURL: url.text, isPlaylist: true)
        let total = Int64(body.count)
        let object = try stage.store.create(
            ObjectDescription(
                key: try #require(stage.keys.entryKeys(url, of: session).first), url: url.text,
                role: ResourceRole.playlist.letter, head: head.encoded, total: total,
                created: .now(), isStorable: true, title: session.id.number))
        try stage.store.publish(object)
        var writer = FillWriter(object, from: 0, to: total)
        try body.withUnsafeBytes { try writer.append($0) }
        writer.end(failure: nil)
        stage.store.finish(object)
    }

    @Test func `a URL with headers names the title of one session, one without names all`() throws {
        let stage = try TitleStage()
        let url = try AbsoluteURL("http://h/l.m3u8")
        func entry(_ name: String, _ value: String) -> Entry {
            Entry(url: url, headers: [Entry.Header(name: name, value: value)])
        }
        let plain = stage.sessions.session(for: Entry(url: url))
        let own = stage.sessions.session(for: entry("Authorization", "Bearer xyz"))
        // Its playlist is the shared one, which the first session has stored.
        let sharing = stage.sessions.session(for: entry("Referer", "http://r/"))
        try keep(url, of: plain, on: stage)
        try keep(url, of: own, on: stage)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
        let administration = stage.administration()
        func found(_ text: String) throws -> Set<SessionID> {
            Set(try administration.find(text).map(\.id))
        }
        #expect(try found("http://h/l.m3u8|Authorization=Bearer%20xyz") == [own.id])
        #expect(try found("http://h/l.m3u8|Referer=http://r/") == [sharing.id])
        #expect(try found("http://h/l.m3u8").isSuperset(of: [plain.id, own.id]))
        // Other nodes get the number: the headers are a secret.
        let text = "http%3A%2F%2Fh%2Fl.m3u8%7CAuthorization%3DBearer%2520xyz"
        for path in ["/api/pin", "/api/unpin"] {
            #expect(
                administration.queriesForNodes(path, "url=\(text)") == ["title=\(own.id.text)"])
        }
        #expect(
            administration.queriesForNodes("/api/purge", "title=\(text)")
                == ["title=\(own.id.text)"])
    }

    @Test func `other nodes get the title that was begun with another signature`() throws {
        let stage = try TitleStage()
        func entry(_ digit: String) throws -> Entry {
            let signature = "1893456000_\(String(repeating: digit, count: 40))"
            return Entry(
                url: try AbsoluteURL("http://h/l.m3u8?token=\(signature)"),
                headers: [Entry.Header(name: "Referer", value: "http://r/")])
        }
        let (begun, given) = (try entry("a"), try entry("b"))
        let session = stage.sessions.session(for: begun)
        try keep(begun.url, of: session, on: stage)
        #expect(try stage.store.flush(within: .seconds(20 as Int64)))
        let administration = stage.administration()
        let text = PercentCoding.queryComponent("\(given.url.text)|Referer=http://r/")
        let ids = [session.id, SessionTable.unkept(for: given).id]
        for path in ["/api/purge", "/api/pin", "/api/unpin"] {
            #expect(
                administration.queriesForNodes(path, "title=\(text)")
                    == ids.map { "title=\($0.text)" }.sorted())
        }
    }

    @Test func `a URL of the daemon that leads nowhere is refused with what to give`() throws {
        let stage = try TitleStage()
        let administration = stage.administration(origin: { _ in nil })
        func reason(_ argument: String) -> String? {
            let answer = administration.answer(.post, "/api/purge?\(argument)")
            guard case .failure(.badRequest, let reason) = answer else { return nil }
            return reason
        }
        for name in ["url", "title"] {
            let text = PercentCoding.queryComponent("http://127.0.0.1:9000/s/AAAA/a.ts")
            #expect(reason("\(name)=\(text)")?.contains("give the origin's URL") == true)
            #expect(reason("\(name)=nonsense")?.contains("give the origin's URL") == false)
        }
    }

    @Test func `a link of a session means what starts there with the session's headers`() throws {
        let stage = try TitleStage()
        let url = try AbsoluteURL("http://h/l.m3u8")
        let header = Entry.Header(name: "Referer", value: "http://r/")
        let session = stage.sessions.session(for: Entry(url: url, headers: [header], window: 60))
        #expect(TitleStart(url, in: session).session?.id == session.id)
        let limited = stage.sessions.session(
            for: Entry(url: url, limit: VariantLimit(height: 720)))
        #expect(TitleStart(url, in: limited).session?.id == limited.id)
        #expect(TitleStart(url, in: Session(startingAt: url)).session == nil)
        let recording = stage.sessions.session(
            for: Entry(url: url, headers: [header]), recording: "r1")
        #expect(TitleStart(url, in: recording).session?.id == recording.id)
    }
}
