import Testing

@testable import Posix

struct ReceivingTests {
    private static func measured(_ bytes: UInt64, packets: UInt32) -> Receiving {
        Receiving(bytes: bytes, packets: packets, packetSize: 1_448, outOfOrder: 0)
    }

    @Test func `bytes behind a gap do not count as if they came with the packet that fills it`() {
        let before = Self.measured(10_000, packets: 7)
        let withGap = Self.measured(10_000, packets: 107)
        let filled = Self.measured(10_000 + 110 * 1_448, packets: 117)
        #expect(withGap.arrived(since: before) == 0)
        #expect(filled.arrived(since: withGap) == 14_480)
    }

    @Test func `what arrives in order counts, and the count of packets may begin again`() {
        let before = Self.measured(10_000, packets: .max - 1)
        #expect(Self.measured(12_000, packets: 3).arrived(since: before) == 2_000)
        #expect(Self.measured(9_000, packets: 3).arrived(since: before) == nil)
        #expect(
            Self.measured(.max, packets: .max - 2).arrived(since: before)
                == Int64(UInt32.max) * 1_448)
    }
}
