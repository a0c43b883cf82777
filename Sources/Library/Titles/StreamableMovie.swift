// MP4 files whose movie box stands behind the media, brought into the order of a stream.
import Numbers

/// The beginning of an MP4 file, with the movie box moved before the media data.
///
/// A decoder that reads its input once needs the movie box first (ISO/IEC 14496-12 section 8.2.1);
/// cameras and encoders write it last. The offsets of chunks in the movie box are adjusted to the
/// new places (section 8.7.5).
struct StreamableMovie {
    let bytes: [UInt8]

    /// The most boxes at the top level that are looked at.
    private static let mostBoxes = 64
    /// The longest movie box: about ten hours of video.
    private static let longestMovie = 8 << 20
    private static let longestType = 4_096

    /// Reorders a file; nil if it is no MP4 file, is in this order already, or lacks a box.
    ///
    /// - Parameters:
    ///   - total: the length of the file.
    ///   - most: the most bytes of the result; the media is cut there.
    ///   - read: returns the bytes of a range; nil unless all of them are there.
    init?(total: Int64, most: Int, read: (Range<Int64>) -> [UInt8]?) {
        var (type, media, movie): (MovieBox?, MovieBox?, MovieBox?)
        var position: Int64 = 0
        for _ in 0..<Self.mostBoxes where movie == nil && position < total {
            guard let head = read(position..<min(total, position + 16)),
                let box = MovieBox(head[...], at: position, before: total)
            else { return nil }
            switch box.name {
            case .fileType where position == 0: type = box
            case .media where media == nil: media = box
            case .movie: movie = box
            default: break
            }
            guard type != nil, movie == nil || media != nil else { return nil }
            position = box.range.upperBound
        }
        guard let type, let media, let movie, type.range.count <= Self.longestType,
            movie.range.count <= min(Self.longestMovie, most / 2),
            let start = read(type.range), var middle = read(movie.range)
        else { return nil }
        let before = Int64(start.count + middle.count)
        let shift = ChunkShift(from: media.range.lowerBound, to: before)
        shift.apply(to: &middle, in: movie.headLength..<middle.count, depth: 0)
        let left = Int64(most).subtractingSaturated(before)
        let end = min(media.range.upperBound, media.range.lowerBound.addingSaturated(left))
        guard end > media.range.lowerBound, let rest = read(media.range.lowerBound..<end) else {
            return nil
        }
        bytes = start + middle + rest
    }
}

/// The head of a box (ISO/IEC 14496-12 section 4.2).
private struct MovieBox {
    enum Name: UInt32 {
        case fileType = 0x6674_7970
        case media = 0x6D64_6174
        case movie = 0x6D6F_6F76
        case track = 0x7472_616B
        case trackMedia = 0x6D64_6961
        case information = 0x6D69_6E66
        case sampleTable = 0x7374_626C
        case chunkOffsets = 0x7374_636F
        case longChunkOffsets = 0x636F_3634
    }

    /// Nil for boxes that are copied unread.
    let name: Name?
    let range: Range<Int64>
    let headLength: Int

    /// Parses a head; nil for a box that is shorter than its head, or reaches beyond the end.
    ///
    /// - Parameters:
    ///   - bytes: the first 16 bytes of the box, or all that there are.
    ///   - start: its place.
    ///   - end: the end of the file, or of the box around it.
    init?(_ bytes: ArraySlice<UInt8>, at start: Int64, before end: Int64) {
        guard bytes.count >= 8 else { return nil }
        let size = UInt64(bigEndian: bytes.prefix(4))
        let code = UInt64(bigEndian: bytes.dropFirst(4).prefix(4))
        name = Name(rawValue: UInt32(truncatingIfNeeded: code))
        var length = size
        headLength = size == 1 ? 16 : 8
        if size == 1 {
            guard bytes.count >= 16 else { return nil }
            length = UInt64(bigEndian: bytes.dropFirst(8).prefix(8))
        }
        let room = end.subtractingSaturated(start)
        if size == 0 { length = UInt64(clamping: room) }
        guard length >= UInt64(headLength), length <= UInt64(clamping: room) else { return nil }
        range = start..<start + Int64(length)
    }
}

/// Moves the chunk offsets of a movie box by the distance that its media data moves.
private struct ChunkShift {
    let from: Int64
    let to: Int64

    /// movie, track, media, information, sample table.
    private static let mostDepth = 4

    func apply(to bytes: inout [UInt8], in range: Range<Int>, depth: Int) {
        var position = range.lowerBound
        while position + 8 <= range.upperBound {
            let head = bytes[position..<min(position + 16, range.upperBound)]
            guard let box = MovieBox(head, at: Int64(position), before: Int64(range.upperBound))
            else { return }
            let end = Int(box.range.upperBound)
            let content = position + box.headLength..<end
            switch box.name {
            case .track, .trackMedia, .information, .sampleTable:
                if depth < Self.mostDepth { apply(to: &bytes, in: content, depth: depth + 1) }
            case .chunkOffsets: move(&bytes, in: content, width: 4)
            case .longChunkOffsets: move(&bytes, in: content, width: 8)
            default: break
            }
            position = end
        }
    }

    /// Moves the entries behind version, flags and count; an offset outside of the media becomes 0.
    private func move(_ bytes: inout [UInt8], in range: Range<Int>, width: Int) {
        guard range.count >= 8 else { return }
        let first = range.lowerBound + 8
        let count = UInt64(bigEndian: bytes[range.lowerBound + 4..<first])
        let places = min(count, UInt64((range.upperBound - first) / width))
        for place in 0..<Int(places) {
            let start = first + place * width
            let offset = Int64(clamping: UInt64(bigEndian: bytes[start..<start + width]))
            let moved = offset < from ? 0 : offset.subtractingSaturated(from).addingSaturated(to)
            let limit = width == 4 ? Int64(UInt32.max) : Int64.max
            var value = UInt64(clamping: moved > limit ? 0 : moved)
            for index in stride(from: start + width - 1, through: start, by: -1) {
                bytes[index] = UInt8(truncatingIfNeeded: value)
                value >>= 8
            }
        }
    }
}

extension UInt64 {
    /// The value of up to eight bytes, the most significant one first.
    fileprivate init(bigEndian bytes: ArraySlice<UInt8>) {
        self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
