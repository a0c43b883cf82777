/// The numbers that a snapshot stores of a window as a whole, where no tag of a playlist can hold
/// them: one comment line for each.
struct SnapshotNumbers {
    /// The names of the numbers, in the order of their lines.
    ///
    /// Windows that former versions saved have them: no name may change or get another meaning.
    enum Name: String, CaseIterable {
        /// The epoch that the origin's list was in.
        case listEpoch = "LIST-EPOCH"
        /// The number after that of the last segment that a private host may have listed.
        case privateEnd = "PRIVATE-UP-TO"
        /// How many segments were dropped for the limits.
        case droppedCount = "DROPPED"
        /// How many segments were never seen and have no placeholder.
        case skippedCount = "SKIPPED"
        /// The origin's discontinuity sequence number of the newest segment, where it is not the
        /// window's own one.
        case originDiscontinuity = "ORIGIN-DISCONTINUITY"
        /// The number of the first segment that is listed for players, where earlier ones are
        /// remembered.
        case listStart = "LIST-START"
    }

    private static let start = Array("#SLUICE-".utf8)
    private var numbers: [Name: Int] = [:]

    /// A number; nil if it is not stored.
    subscript(name: Name) -> Int? {
        get { numbers[name] }
        set { numbers[name] = newValue }
    }

    /// Stores the number of a comment; returns false for any other comment.
    mutating func read(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.starts(with: Self.start), let colon = line.firstIndex(of: 0x3A) else {
            return false
        }
        let tag = line[..<colon].dropFirst(Self.start.count)
        guard let name = Name.allCases.first(where: { $0.rawValue.utf8.elementsEqual(tag) }),
            let number = DecimalNumber.integer(line[colon...].dropFirst())
        else { return false }
        numbers[name] = number
        return true
    }

    /// The comment lines with LF.
    var lines: [UInt8] {
        var text: [UInt8] = []
        for name in Name.allCases {
            guard let number = numbers[name] else { continue }
            text += Self.start
            text += Array("\(name.rawValue):\(number)\n".utf8)
        }
        return text
    }
}

/// The comment line in which a snapshot stores what no tag of a playlist can hold of a segment.
struct TimeShiftNote: Hashable {
    let epoch: Int
    let originNumber: Int
    let generation: Int
    let marks: TimeShiftSegment.Marks

    init(
        epoch: Int, originNumber: Int, generation: Int,
        marks: TimeShiftSegment.Marks = TimeShiftSegment.Marks()
    ) {
        self.epoch = epoch
        self.originNumber = originNumber
        self.generation = generation
        self.marks = marks
    }

    private static let start = Array("#SLUICE-SEGMENT:".utf8)

    /// Parses the comment; nil for any other comment.
    init?(_ line: ArraySlice<UInt8>) {
        guard line.starts(with: Self.start) else { return nil }
        let numbers = line.dropFirst(Self.start.count).split(separator: 0x2C)
            .compactMap(DecimalNumber.integer)
        guard numbers.count >= 6 else { return nil }
        let marks = numbers[3...].map { UInt32(clamping: $0) }
        self.init(
            epoch: numbers[0], originNumber: numbers[1], generation: numbers[2],
            marks: .init(segment: marks[0], map: marks[1], keys: Array(marks[2...])))
    }

    var line: String {
        let keys = marks.keys.isEmpty ? [0] : marks.keys
        return "#SLUICE-SEGMENT:\(epoch),\(originNumber),\(generation),"
            + "\(marks.segment),\(marks.map),\(keys.map(String.init).joined(separator: ","))\n"
    }

    /// The default for the next segment, if that has no note of its own.
    var next: TimeShiftNote {
        TimeShiftNote(epoch: epoch, originNumber: originNumber + 1, generation: 0, marks: marks)
    }
}
