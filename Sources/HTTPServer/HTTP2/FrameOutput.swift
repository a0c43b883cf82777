// Frames to be written to a socket.

/// Collects frames, content included, for one write.
///
/// The buffer grows to the largest turn and is shared by the connections of a loop, one at a time.
final class FrameOutput {
    /// The number of bytes at which a turn stops collecting.
    static let full = 64 << 10

    private var buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: full + (32 << 10), alignment: 64)
    private(set) var count = 0

    deinit { buffer.deallocate() }

    var isFull: Bool { count >= Self.full }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<count]) }

    func append(_ more: UnsafeRawBufferPointer) {
        reserve(more.count)
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: more)
        count += more.count
    }

    /// Returns the room after a frame's header at the end of the output; not yet part of the
    /// output.
    func room(for content: Int) -> UnsafeMutableRawBufferPointer {
        reserve(Self.frameHeader + content)
        let start = count + Self.frameHeader
        return UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + content)])
    }

    /// Adds the frame's header before content that was written into `room`.
    func finishFrame(_ header: UnsafePointer<UInt8>, content: Int) {
        let header = UnsafeRawBufferPointer(start: header, count: Self.frameHeader)
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: header)
        count += Self.frameHeader + content
    }

    func removeAll() { count = 0 }

    private func reserve(_ more: Int) {
        guard count + more > buffer.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(buffer.count * 2, count + more), alignment: 64)
        larger.copyMemory(from: bytes)
        buffer.deallocate()
        buffer = larger
    }

    private static let frameHeader = 9
}
