/// The division of a segment of a transport stream (ISO/IEC 13818-1) into parts.
enum TransportStreamParts {
    private static let packetLength = 188

    /// Returns the offsets at which the parts of a segment begin, and its length.
    ///
    /// Each part but the first begins with a video frame, and all have the same number of frames
    /// but for one: players decode what they have of a segment, and must not get half a frame.
    ///
    /// - Parameters:
    ///   - segment: the bytes of the segment.
    ///   - count: the number of parts, above 0.
    /// - Returns: the offsets, one more than parts; nil if there are fewer video frames than parts.
    static func offsets(in segment: [UInt8], count: Int) -> [Int]? {
        let packets = stride(from: 0, through: segment.count - packetLength, by: packetLength)
        let frames = packets.filter { beginsFrame(segment[$0..<$0 + packetLength]) }
        guard frames.count >= count else { return nil }
        return [0] + (1..<count).map { frames[frames.count * $0 / count] } + [segment.count]
    }

    /// True if a packet begins a packet of a video stream (PES), which has one frame.
    private static func beginsFrame(_ packet: ArraySlice<UInt8>) -> Bool {
        let start = packet.startIndex
        guard packet[start] == 0x47, packet[start + 1] & 0x40 != 0, packet[start + 3] & 0x10 != 0
        else { return false }
        let hasAdaptation = packet[start + 3] & 0x20 != 0
        let payload = packet.dropFirst(4 + (hasAdaptation ? 1 + Int(packet[start + 4]) : 0))
        return payload.starts(with: [0, 0, 1])
            && payload.dropFirst(3).first.map { (0xE0...0xEF).contains($0) } == true
    }
}
