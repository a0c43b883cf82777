// The keys and initialization sections that the segments of a growing window need.
import HLS
import URISyntax

/// A key or an initialization section; several sections may be ranges of one resource.
struct StructurePiece: Hashable {
    let url: AbsoluteURL
    let role: ResourceRole
    let range: SubRange?
    /// Tells apart the resources that the URL has named over time.
    let mark: UInt32
}

/// The keys and initialization sections that were requested for a window.
///
/// A stream may rotate its key for years: pieces that no segment of the window needs are forgotten.
struct RequestedStructure {
    private var pieces: Set<StructurePiece> = []
    /// The number of pieces beyond which the window is walked; doubles with what it needs, so that
    /// a walk is rare.
    private var limit = RequestedStructure.leastLimit
    private static let leastLimit = 64
    /// The structure of the segment added last, if all its pieces were requested; nil if some may
    /// not have been.
    private var latest: TimeShiftSegment.Structure?

    var count: Int { pieces.count }

    /// Adds what a segment needs; returns what was not requested before.
    mutating func add(needsOf segment: TimeShiftSegment) -> [StructurePiece] {
        let structure = segment.structure
        guard structure != latest else { return [] }
        latest = structure
        return Self.needs(of: segment).filter { pieces.insert($0).inserted }
    }

    /// Removes a piece, so that a later segment may request it again.
    mutating func remove(_ piece: StructurePiece) {
        pieces.remove(piece)
        latest = nil
    }

    /// Forgets pieces that no segment of a window needs, once there are many.
    mutating func trim(to shift: TimeShift) {
        guard pieces.count > limit else { return }
        var known: Set<TimeShiftSegment.Structure> = []
        let segments = shift.segments.filter { known.insert($0.structure).inserted }
        pieces.formIntersection(segments.flatMap { Self.needs(of: $0) })
        latest = nil
        limit = max(Self.leastLimit, 2 * pieces.count)
    }

    private static func needs(of segment: TimeShiftSegment) -> [StructurePiece] {
        var needed = segment.keyURLs.map {
            StructurePiece(url: $0, role: .key, range: nil, mark: segment.mark(ofKey: $0))
        }
        if let map = segment.mapURL {
            needed.append(
                StructurePiece(
                    url: map, role: .initialization, range: segment.mapRange,
                    mark: segment.marks.map))
        }
        return needed
    }
}
