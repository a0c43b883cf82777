/// Joins the packets of one table of a transport stream (ISO/IEC 13818-1, 2.4.4).
struct SectionCollector: Sendable {
    /// The longest section: a length of 10 bits after 3 bytes.
    private static let longest = 1_024
    /// The packets that such a section may take, and one that it begins at the end of.
    private static let mostPackets = 8

    /// The packets of the last complete section.
    private(set) var packets: [UInt8] = []
    /// The last complete section, from its table number to its checksum.
    private(set) var section: [UInt8] = []
    private var openPackets: [UInt8] = []
    private var open: [UInt8] = []
    private var isOpen = false

    /// Takes a packet of the table.
    ///
    /// - Parameters:
    ///   - bytes: bytes that contain the packet.
    ///   - start: where the packet starts in them.
    ///   - payload: where its payload is.
    ///   - begins: whether a section begins in it.
    /// - Returns: true if it completed a section with a valid checksum.
    mutating func take(
        _ bytes: Span<UInt8>, _ start: Int, _ payload: Range<Int>, begins: Bool
    ) -> Bool {
        var from = payload.lowerBound
        if begins {
            guard !payload.isEmpty else { return false }
            from += 1 + Int(bytes[from])
            openPackets = []
            open = []
            isOpen = true
        }
        guard isOpen, from <= payload.upperBound,
            openPackets.count < Self.mostPackets * TransportScanner.packetLength
        else {
            isOpen = false
            return false
        }
        for place in start..<start + TransportScanner.packetLength {
            openPackets.append(bytes[place])
        }
        for place in from..<payload.upperBound { open.append(bytes[place]) }
        guard open.count >= 3 else { return false }
        let length = 3 + (Int(open[1] & 0x0F) << 8 | Int(open[2]))
        guard length <= Self.longest else {
            isOpen = false
            return false
        }
        guard open.count >= length else { return false }
        isOpen = false
        open.removeLast(open.count - length)
        guard Self.isIntact(open) else { return false }
        section = open
        packets = openPackets
        return true
    }

    /// True if the checksum of a section is right (ISO/IEC 13818-1, annex A).
    private static func isIntact(_ section: [UInt8]) -> Bool {
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in section {
            sum = sum << 8 ^ table[Int((sum >> 24) as UInt32 ^ UInt32(byte))]
        }
        return sum == 0
    }

    private static let table: [UInt32] = (0..<256).map { (index: UInt32) in
        (0..<8).reduce(index << 24) { sum, _ in
            sum & 0x8000_0000 == 0 ? sum << 1 : sum << 1 ^ 0x04C1_1DB7
        }
    }
}
