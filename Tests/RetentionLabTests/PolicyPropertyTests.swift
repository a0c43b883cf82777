import Retention
import RetentionLab
import Testing

/// Properties of every policy, whatever it prefers.
@Suite struct `Every retention policy` {
    @Test(arguments: RetentionPolicyName.allCases)
    func `has the same objects and bytes as a dictionary`(_ name: RetentionPolicyName) {
        for seed in 1...5 as ClosedRange<UInt64> {
            var dice = Dice(seed)
            var store = NaiveStore(name, capacity: 40_000)
            for step in 0..<4_000 {
                play(&dice, &store, UInt32(1_000 + step / 4))
                #expect(store.policy.count == store.sizes.count)
            }
            #expect(store.policy.bytes == store.bytes)
            #expect((0...400).allSatisfy { store.policy.bytes(of: $0) == store.sizes[$0] })
            #expect(store.faults == 0)
        }
    }

    /// One of the operations of a store.
    private func play(_ dice: inout Dice, _ store: inout NaiveStore, _ now: UInt32) {
        let name = UInt128(dice.roll(400))
        switch dice.roll(10) {
        case 0: store.remove(name)
        case 1...4: store.policy.touch(name, now: now)
        case 5:
            let barred = Set((0..<100).map { _ in UInt128(dice.roll(400)) })
            store.evict(now: now, barred: barred)
        default:
            let kind = RetentionKind(rawValue: UInt8(dice.roll(4))) ?? .media
            let title = UInt64(dice.roll(20))
            store.keep(
                name,
                Retained(
                    bytes: Int64(dice.roll(1_000)), title: title, kind: kind,
                    isRead: dice.roll(4) > 0, lastUsed: now))
        }
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `returns each object once if all must be evicted`(_ name: RetentionPolicyName) {
        var store = filled(name, objects: 500)
        while store.evict(now: 9_000) {}
        #expect(store.victims.count == 500)
        #expect(Set(store.victims).count == 500)
        #expect(store.policy.bytes == 0)
        #expect(store.policy.count == 0)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `finds the only object that is not barred`(_ name: RetentionPolicyName) {
        for wanted in [0, 7, 250, 499] as [UInt128] {
            var store = filled(name, objects: 500)
            let barred = Set(store.sizes.keys).subtracting([wanted])
            let found = store.evict(now: 9_000, barred: barred)
            #expect(found && store.victims == [wanted])
        }
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `returns nothing if all objects are barred, and ends`(_ name: RetentionPolicyName) {
        var store = filled(name, objects: 500)
        var looks = 0
        let victim = store.policy.nextVictim(now: 9_000) { _ in
            looks += 1
            return true
        }
        #expect(victim == nil)
        #expect(looks <= 16 * 64 + 4 * 500)
        #expect(store.policy.count == 500)
        let isFound = store.evict(now: 9_000, barred: Set(store.sizes.keys))
        #expect(!isFound)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `accepts new sizes of known objects`(_ name: RetentionPolicyName) {
        var store = filled(name, objects: 50)
        for object in 0..<50 as Range<UInt128> {
            store.keep(object, Retained(bytes: 3, title: 4, kind: .live, lastUsed: 2_000))
        }
        #expect(store.policy.count == 50)
        #expect(store.policy.bytes == 150)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `ignores uses and removals of unknown objects`(_ name: RetentionPolicyName) {
        let policy = name.makePolicy(capacity: 100)
        policy.touch(1, now: 1)
        policy.remove(1)
        #expect(policy.count == 0)
        #expect(policy.nextVictim(now: 1, isBarred: { _ in false }) == nil)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `keeps its state when objects of an earlier process are added`(
        _ name: RetentionPolicyName
    ) {
        let policy = name.makePolicy(capacity: 1_000)
        policy.insert(1, Retained(bytes: 10, lastUsed: 500))
        policy.restore(1, Retained(bytes: 99, lastUsed: 100))
        policy.restore(2, Retained(bytes: 20, lastUsed: 90))
        #expect(policy.count == 2)
        #expect(policy.bytes == 30)
        #expect(policy.nextVictim(now: 600, isBarred: { _ in false }) == 2)
    }

    @Test(arguments: RetentionPolicyName.allCases)
    func `uses at most 100 bytes of memory per object, however many came and went`(
        _ name: RetentionPolicyName
    ) {
        let kept = 100_000
        let policy = name.makePolicy(capacity: Int64(kept) * 4_096)
        for number in 0..<3 * kept {
            if number >= kept { _ = policy.nextVictim(now: 1, isBarred: { _ in false }) }
            policy.insert(
                UInt128(number),
                Retained(bytes: 4_096, title: UInt64(number / 100), lastUsed: UInt32(number / 10)))
        }
        #expect(policy.count == kept)
        #expect(policy.memoryBytes <= 100 * kept)
    }

    @Test(arguments: [RetentionPolicyName.s3fifo, .sieve, .tinylfu, .titles])
    func `all policies except LRU keep objects in repeated use while others are read once`(
        _ name: RetentionPolicyName
    ) {
        var store = NaiveStore(name, capacity: 10_000)
        for favourite in 0..<3 as Range<UInt128> {
            store.keep(favourite, Retained(bytes: 100, lastUsed: 1_000))
            for use in 1...3 as ClosedRange<UInt32> {
                store.policy.touch(favourite, now: 1_000 + use * 100)
            }
        }
        for number in 0..<150 {
            store.keep(
                UInt128(1_000 + number), Retained(bytes: 100, lastUsed: UInt32(2_000 + number * 10))
            )
        }
        #expect((0..<3 as Range<UInt128>).allSatisfy { store.sizes[$0] != nil })
    }

    private func filled(_ name: RetentionPolicyName, objects: Int) -> NaiveStore {
        var store = NaiveStore(name, capacity: .max)
        for number in 0..<objects {
            store.keep(
                UInt128(number),
                Retained(
                    bytes: 100, title: UInt64(number / 20),
                    kind: RetentionKind(rawValue: UInt8(number % 4)) ?? .media,
                    lastUsed: UInt32(1_000 + number)))
        }
        return store
    }
}
