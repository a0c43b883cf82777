// The structure of an MPEG transport stream (ISO/IEC 13818-1) that arrives in pieces: where its
// packets begin, its program tables, the packets at which decoding can begin, and its clock.

/// Finds what a late viewer of a transport stream needs.
///
/// Holds at most a search window of bytes and the packets of two tables; the work is linear in the
/// number of bytes, whatever they are.
package struct TransportScanner: Sendable {
    /// The length of a packet in bytes.
    package static let packetLength = 188
    private static let syncByte: UInt8 = 0x47
    /// Sync bytes at the distance of a packet that prove where packets begin.
    private static let proof = 4
    /// Bytes gathered while searching for them.
    private static let searched = 8 * packetLength
    /// Bytes before the next one that `accessPoints` may refer to.
    package static let reach = Int64(searched)

    /// The offset of the next byte that `buffer` does not hold.
    package private(set) var position: Int64 = 0
    /// The beginning of a packet, or the bytes in which packets are searched for.
    private var buffer: [UInt8] = []
    /// True while packets follow one another.
    package private(set) var isLocked = false
    /// The offset of the last packet; nil before the first.
    package private(set) var lastPacket: Int64?

    /// Offsets of packets at which decoding can begin, found since the caller last removed them.
    package var accessPoints: [Int64] = []
    /// The time that the stream's clock has advanced; jumps are left out.
    package private(set) var clock = StreamClock()

    private var associations = SectionCollector()
    private var program = SectionCollector()
    private var programPID: UInt16?
    private var clockPID: UInt16?
    private var key: KeyStream?

    /// The elementary stream whose access points count.
    private struct KeyStream: Equatable {
        let pid: UInt16
        let coding: Coding
    }

    /// How an elementary stream tells that decoding can begin.
    private enum Coding {
        case mpeg2, h264, hevc, otherVideo
        /// Every packet that begins a unit will do.
        case audio
    }

    package init() {}

    /// The packets of the last complete tables, first the program association, then the program
    /// map; empty until both have been received.
    package var tables: [UInt8] {
        guard !program.packets.isEmpty else { return [] }
        return associations.packets + program.packets
    }

    /// True once packets, a program map and a clock were found.
    package var isRecognised: Bool { isLocked && key != nil && clock.hasStarted }

    /// Returns how many bytes complete the packet that an offset lies in; 0 if it begins one.
    package func bytesToBoundary(from offset: Int64) -> Int {
        guard let lastPacket else { return 0 }
        let length = Int64(Self.packetLength)
        let over = ((offset - lastPacket) % length + length) % length
        return over == 0 ? 0 : Int(length - over)
    }

    /// Counts all offsets from another start, after bytes were removed or inserted before them.
    package mutating func shift(by distance: Int64) {
        position += distance
        lastPacket = lastPacket.map { $0 + distance }
        for index in accessPoints.indices { accessPoints[index] += distance }
    }

    // MARK: Packets

    /// Takes the next bytes of the stream.
    package mutating func take(_ bytes: Span<UInt8>) {
        var index = 0
        while index < bytes.count {
            guard isLocked, buffer.isEmpty, bytes.count - index >= Self.packetLength else {
                index += gather(bytes, from: index)
                continue
            }
            guard bytes[index] == Self.syncByte else {
                isLocked = false
                continue
            }
            packet(bytes, at: index, position)
            index += Self.packetLength
            position += Int64(Self.packetLength)
        }
    }

    /// Moves bytes into the buffer, and handles it when it is full.
    ///
    /// - Returns: the number of bytes taken, at least one.
    private mutating func gather(_ bytes: Span<UInt8>, from index: Int) -> Int {
        let wanted = isLocked ? Self.packetLength : Self.searched
        let count = min(wanted - buffer.count, bytes.count - index)
        for place in index..<index + count { buffer.append(bytes[place]) }
        position += Int64(count)
        if isLocked {
            if buffer.count == wanted { endPacket() }
        } else {
            search()
        }
        return count
    }

    private mutating func endPacket() {
        guard buffer[0] == Self.syncByte else {
            isLocked = false
            return search()
        }
        let whole = buffer
        buffer.removeAll(keepingCapacity: true)
        packet(whole.span, at: 0, position - Int64(Self.packetLength))
    }

    /// Looks for the beginning of packets in the buffer, and drops the bytes that are none.
    private mutating func search() {
        let span = (Self.proof - 1) * Self.packetLength
        guard buffer.count > span else { return }
        let last = buffer.count - span
        let found = (0..<last).first { start in
            (0..<Self.proof).allSatisfy { buffer[start + $0 * Self.packetLength] == Self.syncByte }
        }
        guard let found else { return buffer.removeFirst(last) }
        isLocked = true
        let held = Array(buffer[found...])
        buffer.removeAll(keepingCapacity: true)
        position -= Int64(held.count)
        take(held.span)
    }

    /// Reads one packet.
    private mutating func packet(_ bytes: Span<UInt8>, at start: Int, _ offset: Int64) {
        lastPacket = offset
        let flags = bytes[start + 1]
        // A demodulator marked it as damaged.
        guard flags & 0x80 == 0 else { return }
        let pid = UInt16(flags & 0x1F) << 8 | UInt16(bytes[start + 2])
        let control = bytes[start + 3]
        let end = start + Self.packetLength
        var payload = start + 4
        var isRandomAccess = false
        if control & 0x20 != 0 {
            let length = Int(bytes[start + 4])
            payload = start + 5 + length
            guard payload <= end else { return }
            if length > 0 {
                isRandomAccess = bytes[start + 5] & 0x40 != 0
                if bytes[start + 5] & 0x10 != 0, length >= 7 { readClock(bytes, start + 6, pid) }
            }
        }
        if control & 0x10 == 0 { payload = end }
        let begins = flags & 0x40 != 0
        switch pid {
        case 0:
            guard associations.take(bytes, start, payload..<end, begins: begins) else { return }
            learnPrograms()
        case programPID:
            guard program.take(bytes, start, payload..<end, begins: begins) else { return }
            learnStreams()
        case key?.pid:
            let isClear = control & 0xC0 == 0
            if isRandomAccess
                || (begins && isClear && mayBegin(bytes, payload..<end))
                || (begins && key?.coding == .audio)
            {
                accessPoints.append(offset)
            }
        default: break
        }
    }

    /// Reads a program clock reference of the program, or of any until its map is known.
    private mutating func readClock(_ bytes: Span<UInt8>, _ start: Int, _ pid: UInt16) {
        guard pid == clockPID ?? pid else { return }
        if clockPID == nil { clockPID = pid }
        let high =
            UInt64(bytes[start]) << 25 | UInt64(bytes[start + 1]) << 17
            | UInt64(bytes[start + 2]) << 9
        clock.advance(
            to: high | UInt64(bytes[start + 3]) << 1 | UInt64(bytes[start + 4]) >> 7)
    }

    // MARK: Tables

    /// Takes the first program of the association table.
    private mutating func learnPrograms() {
        let section = associations.section
        guard section.count >= 12, section[0] == 0 else { return }
        for entry in stride(from: 8, through: section.count - 8, by: 4) {
            let number = UInt16(section[entry]) << 8 | UInt16(section[entry + 1])
            // Program 0 is the network's own information.
            guard number != 0 else { continue }
            let pid = UInt16(section[entry + 2] & 0x1F) << 8 | UInt16(section[entry + 3])
            if pid != programPID {
                programPID = pid
                program = SectionCollector()
                key = nil
            }
            return
        }
    }

    /// Takes the clock and the first video stream of the program, or the first stream of radio.
    private mutating func learnStreams() {
        let section = program.section
        guard section.count >= 16, section[0] == 2 else { return }
        let ofClock = UInt16(section[8] & 0x1F) << 8 | UInt16(section[9])
        if ofClock != 0x1FFF, ofClock != clockPID {
            clockPID = ofClock
            clock.interrupt()
        }
        var place = 12 + (Int(section[10] & 0x0F) << 8 | Int(section[11]))
        var chosen: KeyStream?
        while place + 5 <= section.count - 4 {
            let pid = UInt16(section[place + 1] & 0x1F) << 8 | UInt16(section[place + 2])
            if let coding = Self.video(section[place]) {
                chosen = KeyStream(pid: pid, coding: coding)
                break
            }
            if chosen == nil { chosen = KeyStream(pid: pid, coding: .audio) }
            place += 5 + (Int(section[place + 3] & 0x0F) << 8 | Int(section[place + 4]))
        }
        if let chosen { key = chosen }
    }

    /// Returns the coding of a stream type (ISO/IEC 13818-1, table 2-34); nil unless it is video.
    private static func video(_ type: UInt8) -> Coding? {
        switch type {
        case 0x01, 0x02: .mpeg2
        case 0x1B: .h264
        case 0x24: .hevc
        case 0x10, 0x21, 0x33, 0x42, 0xD1, 0xD2, 0xEA: .otherVideo
        default: nil
        }
    }

    // MARK: Random access without its flag

    /// True if the unit that begins here has what decoders need first: encoders that do not set the
    /// flag begin such a unit with its parameters.
    private func mayBegin(_ bytes: Span<UInt8>, _ payload: Range<Int>) -> Bool {
        guard let key, key.coding != .audio, key.coding != .otherVideo, payload.count > 9,
            bytes[payload.lowerBound] == 0, bytes[payload.lowerBound + 1] == 0,
            bytes[payload.lowerBound + 2] == 1
        else { return false }
        var index = payload.lowerBound + 9 + Int(bytes[payload.lowerBound + 8])
        while index + 3 < payload.upperBound {
            if bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 {
                if isFirst(bytes[index + 3], key.coding) { return true }
                index += 3
            } else {
                index += 1
            }
        }
        return false
    }

    private func isFirst(_ code: UInt8, _ coding: Coding) -> Bool {
        switch coding {
        // Sequence header, group of pictures.
        case .mpeg2: code == 0xB3 || code == 0xB8
        // Slice of an IDR picture, sequence parameters.
        case .h264: code & 0x80 == 0 && (code & 0x1F == 5 || code & 0x1F == 7)
        // Intra random access pictures, video and sequence parameters.
        case .hevc:
            code & 0x80 == 0
                && ((16...21).contains(code >> 1 & 0x3F) || (32...33).contains(code >> 1 & 0x3F))
        case .otherVideo, .audio: false
        }
    }
}
