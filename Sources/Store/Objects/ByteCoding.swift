// Little-endian integers in byte arrays.

/// Appends little-endian integers.
struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Reads bytes and little-endian integers from the front of memory owned by the caller; methods
/// return nil once the bytes run out.
struct RawReader {
    private var rest: UnsafeRawBufferPointer
    /// The number of bytes read or skipped.
    private(set) var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

    /// Skips bytes that are known to be present.
    mutating func skip(_ count: Int) {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        offset += count
    }

    mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { skip(count) }
        return UnsafeRawBufferPointer(rebasing: rest[..<count])
    }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        guard let bytes = take(MemoryLayout<Value>.size) else { return nil }
        return Value(littleEndian: bytes.loadUnaligned(as: Value.self))
    }

    mutating func integers<Value: FixedWidthInteger>(
        _ type: Value.Type, count: Int
    ) -> [Value]? {
        let size = MemoryLayout<Value>.size
        guard count >= 0, count <= rest.count / size, let bytes = take(count * size) else {
            return nil
        }
        return (0..<count).map {
            Value(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * size, as: Value.self))
        }
    }

    private static let largestEnd: Int64 = 1 << 53 - 1

    /// Reads spans as pairs of 64-bit numbers; nil unless they ascend without touching, up to
    /// 2^53 - 1.
    mutating func spans(_ count: Int) -> SpanSet? {
        guard count >= 0, count <= rest.count / 16 else { return nil }
        var spans = SpanSet()
        for index in 0..<count {
            guard let start = integer(Int64.self), let end = integer(Int64.self), start >= 0,
                end > start, end <= Self.largestEnd, start > spans.end || index == 0
            else { return nil }
            spans.insert(start..<end)
        }
        return spans
    }
}
