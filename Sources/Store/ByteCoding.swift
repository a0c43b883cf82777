/// Little-endian integers in byte arrays.

/// Appends little-endian integers.
struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Takes bytes and little-endian integers from the front of memory that somebody else holds; nil
/// once they run out.
struct RawReader {
    private var rest: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

    /// Passes over bytes that are known to be there.
    mutating func skip(_ count: Int) { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }

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

    /// Spans as pairs of 64-bit numbers; nil unless they ascend without touching.
    mutating func spans(_ count: Int) -> SpanSet? {
        guard count >= 0, count <= rest.count / 16 else { return nil }
        var spans = SpanSet()
        for index in 0..<count {
            guard let start = integer(Int64.self), let end = integer(Int64.self), start >= 0,
                end > start, start > spans.end || index == 0
            else { return nil }
            spans.insert(start..<end)
        }
        return spans
    }
}

/// Takes bytes and little-endian integers from the front; nil once they run out.
struct ByteReader {
    let bytes: [UInt8]
    var offset = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= bytes.count - offset else { return nil }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        let size = Value.bitWidth / 8
        guard size <= bytes.count - offset else { return nil }
        defer { offset += size }
        return bytes.withUnsafeBytes { raw in
            Value(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: Value.self))
        }
    }

    /// Spans as pairs of 64-bit numbers; nil unless they ascend without touching.
    mutating func spans(_ count: Int) -> SpanSet? {
        guard count <= (bytes.count - offset) / 16 else { return nil }
        var spans = SpanSet()
        for index in 0..<count {
            guard let start = integer(Int64.self), let end = integer(Int64.self),
                start >= spans.end, start > 0 || index == 0, end > start,
                start > spans.end || index == 0
            else { return nil }
            spans.insert(start..<end)
        }
        return spans
    }
}
