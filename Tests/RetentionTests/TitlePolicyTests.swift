import Retention
import Testing

/// Preferences of the policy by titles.
@Suite struct `The policy by titles` {
    private let day: UInt32 = 86_400

    /// The names of a title's objects.
    private func name(_ title: UInt64, _ number: Int) -> UInt128 {
        UInt128(title) << 32 | UInt128(number)
    }

    /// Stores ten segments that are read one per second from `start` on.
    private func watch(
        _ title: UInt64, at start: UInt32, in policy: any RetentionPolicy, segments: Int = 10
    ) {
        for number in 0..<segments {
            policy.insert(
                name(title, number),
                Retained(bytes: 100, title: title, lastUsed: start + UInt32(number)))
        }
    }

    private func victims(_ count: Int, of policy: any RetentionPolicy, now: UInt32) -> [UInt128] {
        (0..<count).compactMap { _ in policy.nextVictim(now: now, isBarred: { _ in false }) }
    }

    private func make() -> any RetentionPolicy {
        TitleAware(capacity: 100_000)
    }

    @Test func `evicts a whole title from its end before the next one`() {
        let policy = make()
        watch(1, at: 1_000, in: policy)
        watch(2, at: 2_000, in: policy)
        let gone = victims(10, of: policy, now: 5_000)
        #expect(gone == (0..<10).reversed().map { name(1, $0) })
        #expect(victims(1, of: policy, now: 5_000) == [name(2, 9)])
    }

    @Test func `stops evicting a title that is watched again`() {
        let policy = make()
        watch(1, at: 1_000, in: policy)
        watch(2, at: 2_000, in: policy)
        _ = victims(3, of: policy, now: 5_000)
        policy.touch(name(1, 0), now: 5_001)
        #expect(victims(1, of: policy, now: 5_002) == [name(2, 9)])
    }

    /// Files without a playlist, each a title of its own, all stored in one second.
    private func keepFiles(_ numbers: Range<Int>, in policy: any RetentionPolicy) {
        for number in numbers {
            policy.insert(name(0, number), Retained(bytes: 100, title: 0, lastUsed: 1_000))
        }
    }

    @Test func `evicts objects of the current second after earlier ones`() {
        let policy = make()
        keepFiles(1..<4, in: policy)
        #expect(victims(1, of: policy, now: 1_000) == [name(0, 1)])
        keepFiles(4..<5, in: policy)
        policy.touch(name(0, 2), now: 1_000)
        #expect(victims(3, of: policy, now: 1_000) == [name(0, 3), name(0, 4), name(0, 2)])
    }

    @Test func `skips an object in use and continues with the next, also within one second`() {
        let policy = make()
        keepFiles(1..<6, in: policy)
        policy.touch(name(0, 2), now: 1_000)
        let victim = policy.nextVictim(now: 1_000) { $0 == name(0, 1) }
        #expect(victim == name(0, 3))
    }

    @Test func `does not search all objects again for each victim if most are barred`() {
        let policy = make()
        keepFiles(0..<20_000, in: policy)
        let free = name(0, 19_000)
        var looks = 0
        let found = (0..<1_000).compactMap { _ in
            policy.nextVictim(now: 5_000) { name in
                looks += 1
                return name < free
            }
        }
        #expect(Set(found).count == 1_000 && found.allSatisfy { $0 >= free })
        #expect(looks < 100_000, "\(looks)")
    }

    @Test func `compares titles again after some victims of a search of all objects`() {
        let policy = make()
        watch(1, at: 100_000, in: policy, segments: 500)
        watch(2, at: 50_000, in: policy)
        // More than are tried before all objects are searched.
        for title in 3..<23 as Range<UInt64> {
            watch(title, at: 1_000 + UInt32(title), in: policy, segments: 1)
        }
        let found = (0..<100).compactMap { _ in
            policy.nextVictim(now: 200_000) { $0 >= name(3, 0) }
        }
        #expect(found.first == name(1, 499))
        #expect(Set(found).isSuperset(of: (0..<10).map { name(2, $0) }))
    }

    @Test func `does not search all structure again for each victim if most is barred`() {
        let policy = make()
        for number in 0..<20_000 {
            policy.insert(
                name(0, number),
                Retained(bytes: 1, title: 0, kind: .structure, lastUsed: 1_000))
        }
        let free = name(0, 19_000)
        var looks = 0
        let found = (0..<1_000).compactMap { _ in
            policy.nextVictim(now: 5_000) { name in
                looks += 1
                return name < free
            }
        }
        #expect(Set(found).count == 1_000)
        #expect(looks < 200_000, "\(looks)")
    }

    @Test func `keeps titles watched on two days longer than those watched once today`() {
        let policy = make()
        watch(1, at: day, in: policy)
        for number in 0..<10 { policy.touch(name(1, number), now: 2 * day) }
        watch(2, at: 2 * day + 20_000, in: policy)
        #expect(victims(1, of: policy, now: 2 * day + 40_000) == [name(2, 9)])
    }

    @Test func `evicts a title watched for two seconds before an older one watched for long`() {
        let policy = make()
        watch(1, at: 1_000, in: policy)
        watch(2, at: 1_100, in: policy, segments: 2)
        #expect(victims(2, of: policy, now: 9_000) == [name(2, 1), name(2, 0)])
    }

    @Test func `evicts unread objects before titles watched earlier`() {
        let policy = make()
        watch(1, at: 1_000, in: policy)
        policy.insert(
            name(2, 0), Retained(bytes: 100, title: 2, isRead: false, lastUsed: 3_000, uses: 0))
        #expect(victims(1, of: policy, now: 9_000) == [name(2, 0)])
    }

    @Test func `evicts old live segments before an older film`() {
        let policy = make()
        watch(1, at: 1_000, in: policy)
        for number in 0..<3 {
            policy.insert(
                name(2, number),
                Retained(
                    bytes: 100, title: 2, kind: .live, lastUsed: 5_000 + UInt32(number) * 6))
        }
        #expect(victims(2, of: policy, now: 5_200) == [name(2, 0), name(2, 1)])
    }

    @Test func `keeps playlists, initialization sections and keys longest`() {
        let policy = make()
        let playlist = name(1, 99)
        policy.insert(
            playlist, Retained(bytes: 100, title: 1, kind: .structure, lastUsed: 1_000))
        watch(1, at: 1_000, in: policy)
        watch(2, at: 2_000, in: policy)
        let gone = victims(21, of: policy, now: 9_000)
        #expect(gone.last == playlist)
        #expect(gone.firstIndex(of: playlist) == 20)
    }

    @Test func `evicts structure without media once it takes a sixteenth of the store`() {
        let policy = make()
        watch(1, at: 1_000, in: policy)
        policy.insert(
            name(1, 99), Retained(bytes: 100, title: 1, kind: .structure, lastUsed: 1_000))
        for title in 2..<80 as Range<UInt64> {
            policy.insert(
                name(title, 0),
                Retained(bytes: 100, title: title, kind: .structure, lastUsed: 2_000))
        }
        #expect(victims(1, of: policy, now: 9_000) == [name(2, 0)])
    }

    @Test func `evicts no recently read segment of the only film`() {
        let policy = make()
        watch(1, at: 1_000, in: policy, segments: 100)
        #expect(victims(1, of: policy, now: 1_100) == [name(1, 40)])
    }

    @Test func `orders objects of an earlier process by their last use`() {
        let policy = make()
        for title in [3, 2, 1] as [UInt64] {
            policy.restore(
                name(title, 0),
                Retained(bytes: 100, title: title, lastUsed: UInt32(title) * 1_000))
        }
        #expect(victims(3, of: policy, now: 9_000) == [name(1, 0), name(2, 0), name(3, 0)])
    }

    @Test func `evicts the earlier of two titles of one second first`() {
        let policy = make()
        for title in 1...40 as ClosedRange<UInt64> {
            policy.insert(name(title, 0), Retained(bytes: 1, title: title, lastUsed: 1_000))
        }
        let gone = victims(30, of: policy, now: 1_000)
        #expect(gone == (1...30).map { name($0, 0) })
    }

    @Test func `a title used while the clock was ahead grows old once the clock is right`() {
        let policy = make()
        let ahead: UInt32 = 100_000_000
        for title in 1...3 as ClosedRange<UInt64> { watch(title, at: 1_000, in: policy) }
        for number in 0..<10 { policy.touch(name(1, number), now: ahead) }
        for number in 0..<10 { policy.touch(name(3, number), now: ahead) }
        for number in 0..<10 { policy.touch(name(2, number), now: 2_000) }
        // Also used with the right clock.
        for number in 0..<10 { policy.touch(name(3, number), now: 3_000) }
        let gone = victims(10, of: policy, now: 3_000 + day)
        #expect(gone == (0..<10).reversed().map { name(1, $0) })
        #expect(victims(1, of: policy, now: 3_000 + day) == [name(3, 9)])
    }

    @Test func `a clock that is behind after the start keeps the order of earlier uses`() {
        let policy = make()
        for title in [3, 2, 1] as [UInt64] {
            policy.restore(
                name(title, 0),
                Retained(bytes: 100, title: title, lastUsed: 100_000_000 + UInt32(title) * 1_000))
        }
        policy.touch(name(2, 0), now: 1_000)
        policy.touch(name(2, 0), now: 100_009_000)
        #expect(victims(2, of: policy, now: 100_009_000) == [name(1, 0), name(3, 0)])
    }

    @Test func `a clock that is years behind after the start costs no title its visits`() {
        let policy = make()
        let start: UInt32 = 100_000_000
        watch(1, at: start, in: policy)
        for second in [day, 2 * day] {
            for number in 0..<10 {
                let time = start + second + UInt32(number)
                policy.touch(name(1, number), now: time)
            }
        }
        // Until it is synchronised.
        policy.touch(name(1, 0), now: 1_000)
        watch(3, at: 1_001, in: policy)
        // What is being watched stays.
        #expect(victims(1, of: policy, now: 1_020) == [name(1, 9)])
        policy.touch(name(1, 0), now: start + 3 * day)
        watch(2, at: start + 3 * day + 3_600, in: policy)
        let gone = victims(10, of: policy, now: start + 3 * day + 7_200)
        #expect(gone == (0..<10).reversed().map { name(3, $0) })
    }

    @Test func `treats each object without a title separately`() {
        let policy = make()
        for number in 1...3 {
            policy.insert(
                UInt128(number), Retained(bytes: 1, kind: .other, lastUsed: UInt32(number) * 1_000))
        }
        #expect(victims(2, of: policy, now: 9_000) == [1, 2])
    }
}
