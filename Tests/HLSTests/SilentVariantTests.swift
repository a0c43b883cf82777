import HLS
import Testing
import URISyntax

/// Variants that are played without their audio.
extension OfflinePlanTests {
    @Test(arguments: [true, false])
    func `video plays without audio of which nothing is stored`(_ isListStored: Bool) throws {
        var lists = [
            Self.url("v"): try Self.list("v", Self.six, keeps: [0, 1, 3]),
            Self.url("w"): try Self.list("w", Self.six, keeps: [0]),
        ]
        if isListStored { lists[Self.url("s")] = try Self.list("s", Self.six, keeps: []) }
        let variants = ["w", "v"].map { Self.variant($0, sound: ["t", "s"]) }
        let plan = OfflinePlan(variants, lists: lists)
        #expect(Self.names(plan) == ["v"] && plan.stretches.ranges == [0..<8, 12..<16])
        #expect(plan.missing(at: Self.url("v")).count == 3)
    }

    @Test func `of live windows without audio the latest is played`() throws {
        let plan = OfflinePlan(
            ["former", "latest"].map { Self.variant($0, sound: ["s"]) },
            lists: [
                Self.url("former"): try Self.list(
                    "former", Self.six, keeps: Set(50..<56), first: 50, isLive: true,
                    received: 1_000),
                Self.url("latest"): try Self.list(
                    "latest", Self.six, keeps: Set(100..<104), first: 100, isLive: true,
                    received: 1_300),
            ])
        #expect(Self.names(plan) == ["latest"] && plan.stretches.ranges == [0..<16])
    }

    @Test func `a variant with its audio is preferred to a longer one without`() throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"]), Self.variant("w", sound: ["t"])],
            lists: [
                Self.url("v"): try Self.list("v", Self.six, keeps: Set(0..<5)),
                Self.url("w"): try Self.list("w", Self.six, keeps: Set(0..<2)),
                Self.url("t"): try Self.list("t", Self.six, keeps: Set(0..<6)),
            ])
        // The master playlist leaves variants without their audio out if there are others.
        #expect(Set(Self.names(plan)).isSuperset(of: ["t", "w"]))
        #expect(plan.stretches.ranges == [0..<8])
    }

    @Test func `video and audio of which different times are stored do not play`() throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", Self.six, keeps: [0, 1]),
                Self.url("s"): try Self.list("s", Self.six, keeps: [4, 5]),
            ])
        #expect(plan.isEmpty)
    }
}
