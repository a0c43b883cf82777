import SharedStore
import Testing

/// When failures of a node's own work at the store are told.
@Suite struct StoreTroublesTests {
    @Test(arguments: [StoreTroubles.Task.changes, .orders])
    func `listings that fail are told once, and once more when one is read`(
        _ task: StoreTroubles.Task
    ) {
        var troubles = StoreTroubles()
        #expect(troubles.worked(task) == false)
        #expect(troubles.failed(task, "403") == true)
        for _ in 0..<10 { #expect(troubles.failed(task, "503") == false) }
        #expect(troubles.failing.map(\.task) == [task] && troubles.failing.map(\.reason) == ["503"])
        #expect(troubles.worked(task) && !troubles.worked(task))
        #expect(troubles.failing.isEmpty)
        #expect(troubles.failed(task, "403") == true)
    }

    @Test func `writes are told of from the second failure in a row`() {
        var troubles = StoreTroubles()
        for _ in 0..<3 {
            #expect(troubles.failed(.writes, "503") == false)
            #expect(troubles.failing.isEmpty && !troubles.worked(.writes))
        }
        #expect(!troubles.failed(.writes, "503") && troubles.failed(.writes, "503"))
        for _ in 0..<10 { #expect(troubles.failed(.writes, "503") == false) }
        #expect(troubles.worked(.writes) && troubles.failing.isEmpty)
    }
}
