import Model
import Routing
import Store
import Testing

/// What is known of the multivariant playlists of live lists.
@Suite struct LiveParentsTests {
    private func key(_ name: String) -> ObjectKey { ObjectKey(sha256Of: name) }

    @Test func `each session is given a live list for the first time once`() {
        let parents = LiveParents()
        #expect(parents.noteShown(key("a"), to: SessionID(1)))
        #expect(!parents.noteShown(key("a"), to: SessionID(1)))
        #expect(parents.noteShown(key("a"), to: SessionID(2)))
        #expect(parents.noteShown(key("b"), to: SessionID(1)))
    }

    @Test func `a playlist that names a live list is known from then on`() {
        let parents = LiveParents()
        #expect(!parents.contains(key("m")))
        #expect(parents.note(key("m")) && !parents.note(key("m")))
        #expect(parents.contains(key("m")) && !parents.contains(key("n")))
    }
}
