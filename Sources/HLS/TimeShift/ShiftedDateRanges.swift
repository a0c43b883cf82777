/// The EXT-X-DATERANGE lines of a longer window, each with the segment that it first preceded.
///
/// An origin may name new date ranges in every window, so that only lines are counted and not what
/// names them: an ID is known only while a line of it is kept.
struct ShiftedDateRanges {
    /// The most lines of one place; a line that completes a date range is a further one with the
    /// same ID.
    private static let mostOfPlace = 64
    /// The most lines of one ID, of one place and of one window; a date range has one to three.
    ///
    /// The attributes of all of a place are compared with those of each new one.
    private static let mostOfID = 8
    /// What a kept line takes besides its own bytes and those of its ID.
    private static let overhead = 128

    /// The most bytes of all lines.
    private let limit: Int
    /// The lines by the number of the segment that they precede.
    private var lines: [Int: [LiveWindow.DateRange]] = [:]
    /// The place of each ID that has lines.
    private var places: [String: Int] = [:]
    private var byteCount = 0
    /// The IDs with lines that the origin's newest window lists.
    private var listed: Set<String> = []
    /// The number of lines of each ID in that window.
    private var counts: [String: Int] = [:]

    init(limit: Int) { self.limit = limit }

    /// Returns the lines that precede a segment.
    func lines(before number: Int) -> [[UInt8]] { lines[number, default: []].map(\.line) }

    /// Returns the lines with places before a segment that the origin still lists.
    func listedLines(before number: Int) -> [[UInt8]] {
        let early = Set(listed.compactMap { places[$0] }.filter { $0 < number })
        return early.sorted().flatMap { lines[$0] ?? [] }.filter { listed.contains($0.id) }
            .map(\.line)
    }

    /// Begins a window of the origin.
    ///
    /// - Parameters:
    ///   - isDelta: true if it may omit date ranges that the window before lists.
    ///   - removed: the IDs that it no longer lists, of a delta update.
    mutating func beginWindow(isDelta: Bool, removed: [String]) {
        counts = [:]
        guard isDelta else { return listed = [] }
        listed.subtract(removed)
    }

    /// Stores a line of the current window, in place of those that it replaces.
    mutating func noteListed(_ range: LiveWindow.DateRange, at number: Int) {
        let count = counts[range.id, default: 0]
        guard count < Self.mostOfID else { return }
        counts[range.id] = count + 1
        if let place = places[range.id], isNew(range.line, at: place) {
            dropReplaced(by: range, at: place)
        }
        note(range, at: number)
        if places[range.id] != nil { listed.insert(range.id) }
    }

    /// Stores a line with the segment that the first line of its ID preceded.
    mutating func note(_ range: LiveWindow.DateRange, at number: Int) {
        let place = places[range.id] ?? number
        guard lines[place, default: []].count < Self.mostOfPlace, isNew(range.line, at: place),
            count(of: range.id, at: place) < Self.mostOfID
        else { return }
        lines[place, default: []].append(range)
        places[range.id] = place
        byteCount += Self.cost(of: range)
        guard byteCount > limit else { return }
        // Half of the limit is made free, so that few lines cause a search for the oldest.
        for place in lines.keys.sorted() where byteCount > limit / 2 { drop(place) }
    }

    private func count(of id: String, at place: Int) -> Int {
        lines[place]?.count(where: { $0.id == id }) ?? 0
    }

    private func isNew(_ line: [UInt8], at place: Int) -> Bool {
        !(lines[place]?.contains { $0.line == line } ?? false)
    }

    /// Drops the former lines of an ID that its current line replaces: an origin may change a line
    /// with each window, a token in a URL for example.
    private mutating func dropReplaced(by range: LiveWindow.DateRange, at place: Int) {
        let current = range.attributes
        let known = lines[place] ?? []
        let kept = known.filter { $0.id != range.id || !$0.isReplaced(by: current) }
        guard kept.count < known.count else { return }
        byteCount += kept.reduce(0) { $0 + Self.cost(of: $1) }
        byteCount -= known.reduce(0) { $0 + Self.cost(of: $1) }
        lines[place] = kept
    }

    /// Adds the lines of an older list that precede the segments before `number`.
    mutating func add(_ older: ShiftedDateRanges, before number: Int) {
        for place in older.lines.keys.filter({ $0 < number }).sorted() {
            for range in older.lines[place] ?? [] { note(range, at: place) }
        }
    }

    /// Drops the lines of all segments before `number`, and moves those that the origin still lists
    /// there.
    mutating func drop(before number: Int) {
        let early = lines.keys.filter { $0 < number }.sorted()
        let kept = early.flatMap { lines[$0] ?? [] }.filter { listed.contains($0.id) }
        for place in early { drop(place) }
        for range in kept {
            note(range, at: number)
            if places[range.id] != nil { listed.insert(range.id) }
        }
    }

    private mutating func drop(_ place: Int) {
        for range in lines.removeValue(forKey: place) ?? [] {
            byteCount -= Self.cost(of: range)
            guard places[range.id] == place else { continue }
            places[range.id] = nil
            listed.remove(range.id)
        }
    }

    private static func cost(of range: LiveWindow.DateRange) -> Int {
        range.line.count + range.id.utf8.count + overhead
    }
}

extension LiveWindow.DateRange {
    /// The value of each attribute.
    fileprivate var attributes: [ArraySlice<UInt8>: ArraySlice<UInt8>] {
        let start = line.firstIndex(of: 0x3A).map { $0 + 1 } ?? line.endIndex
        // Without the LF.
        let list = AttributeList(line, in: start..<max(start, line.endIndex - 1))
        return Dictionary(
            list.map { (line[$0.name], line[$0.value]) }, uniquingKeysWith: { first, _ in first })
    }

    /// True if a later line with these attributes takes the place of this one: an attribute has
    /// another value, which lines of one list must not have (8216bis, 4.4.5.1), or none is missing.
    ///
    /// A line that adds attributes, as SCTE35-IN does, does not replace the one that it completes.
    fileprivate func isReplaced(by later: [ArraySlice<UInt8>: ArraySlice<UInt8>]) -> Bool {
        let own = attributes
        return own.contains { name, value in later[name].map { $0 != value } ?? false }
            || own.allSatisfy { name, _ in later[name] != nil }
    }
}
