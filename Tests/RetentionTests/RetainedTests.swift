import Retention
import Testing

@Suite struct `An object's facts` {
    @Test func `an object counts as read once by default`() {
        let facts = Retained(bytes: 1, lastUsed: 0)
        #expect(facts.isRead)
        #expect(facts.uses == 1)
    }
}
