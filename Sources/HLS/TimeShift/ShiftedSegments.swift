/// The remembered segments of a longer window, found by number and by name, and measured.
///
/// Their numbers rise by one from each to the next. An origin decides how long its URIs and keys
/// are: counting segments alone would let 50,000 of them take gigabytes.
struct ShiftedSegments {
    /// Oldest first.
    private(set) var all: [TimeShiftSegment] = []
    /// The bytes that all take in a playlist: each its own, and its context where that begins.
    private(set) var byteCount = 0
    /// The number of the last segment with each name.
    private var numbersByName: [SegmentName: Int] = [:]
    /// After how many segments the epoch gave a name again last; nil if it gave none.
    ///
    /// Fresh names between those of a ring, as advertisements have, do not change it unless there
    /// are more of them in a row than the ring has.
    private(set) var nameDistance: Int?
    /// How many fresh names in a row the newest segments have, after one that was given again.
    private var freshCount = 0

    // MARK: Search

    /// Returns the index of the segment with a number; nil if it is not remembered.
    func index(of number: Int) -> Int? {
        guard let first = all.first?.number, all.indices.contains(number - first) else {
            return nil
        }
        return number - first
    }

    /// Returns the segment with a number; nil if it is not remembered.
    func segment(number: Int) -> TimeShiftSegment? { index(of: number).map { all[$0] } }

    /// Returns the segment with this origin number in the epoch of the newest one.
    func known(_ originNumber: Int) -> TimeShiftSegment? {
        guard let last = all.last else { return nil }
        let index = all.endIndex - 1 - (last.originNumber - originNumber)
        guard all.indices.contains(index), all[index].epoch == last.epoch else { return nil }
        return all[index]
    }

    /// True if a remembered segment has the same URI and byte range.
    func names(_ segment: TimeShiftSegment) -> Bool {
        numbersByName[segment.name].map { index(of: $0) != nil } ?? false
    }

    // MARK: Change

    /// Sets the marks of a segment.
    mutating func mark(_ number: Int, _ marks: TimeShiftSegment.Marks) {
        guard let place = index(of: number) else { return }
        all[place].marks = marks
    }

    /// Makes a segment that its list has marked as missing one that is there.
    ///
    /// - Parameter originNumber: its origin number in the epoch of the newest one.
    /// - Returns: false if there is no such segment.
    mutating func fillGap(_ originNumber: Int) -> Bool {
        guard let known = known(originNumber), known.isGap, !known.isPlaceholder,
            let place = index(of: known.number)
        else { return false }
        all[place].isGap = false
        return true
    }

    /// Appends a segment as it is.
    mutating func append(_ segment: TimeShiftSegment) {
        var former: Int?
        if !segment.isPlaceholder {
            former = numbersByName.updateValue(segment.number, forKey: segment.name)
        }
        add(segment, after: former)
    }

    /// Appends a segment that the origin's list names; its generation becomes the one after that of
    /// the segment that had its name before.
    ///
    /// - Parameters:
    ///   - segment: the segment.
    ///   - windowLength: the number of segments in the window that lists it. A name that recurs
    ///     within the window, as that of a slate, is not one of a ring.
    /// - Returns: the generation.
    mutating func appendNew(_ segment: TimeShiftSegment, windowLength: Int = 0) -> Int {
        var segment = segment
        let former = numbersByName.updateValue(segment.number, forKey: segment.name)
        if let place = former.flatMap({ index(of: $0) }) {
            segment.generation = all[place].generation + 1
        }
        add(segment, after: former, windowLength: windowLength)
        return segment.generation
    }

    /// Appends a segment whose name the one with the number `former` had before.
    private mutating func add(
        _ segment: TimeShiftSegment, after former: Int?, windowLength: Int = 0
    ) {
        if let last = all.last, last.epoch != segment.epoch { nameDistance = nil }
        let known = former.flatMap { self.segment(number: $0) }
        if let known, known.epoch == segment.epoch, segment.number - known.number > windowLength {
            nameDistance = segment.number - known.number
            freshCount = 0
        } else if let distance = nameDistance, !segment.isPlaceholder {
            freshCount += 1
            if freshCount > distance { nameDistance = nil }
        }
        byteCount += size(of: segment, after: all.last)
        all.append(segment)
    }

    /// Puts older segments before the others; the last of them precedes the first of these.
    mutating func prepend(_ older: ArraySlice<TimeShiftSegment>) {
        all.insert(contentsOf: older, at: 0)
        byteCount = measured
        for segment in older where !segment.isPlaceholder {
            if numbersByName[segment.name].map({ $0 < segment.number }) ?? true {
                numbersByName[segment.name] = segment.number
            }
        }
    }

    /// Drops so many of the oldest segments.
    mutating func removeFirst(_ count: Int) {
        guard count > 0 else { return }
        for index in 0..<count {
            let name = all[index].name
            if numbersByName[name] == all[index].number { numbersByName[name] = nil }
            byteCount -= size(of: all[index], after: index > 0 ? all[index - 1] : nil)
        }
        if count < all.count, all[count].context === all[count - 1].context {
            // The context begins with the next segment now.
            byteCount += all[count].context.byteCount
        }
        all.removeFirst(count)
    }

    // MARK: Size

    /// Returns the bytes that a segment takes after another one: its own, and its context if that
    /// begins with it.
    private func size(of segment: TimeShiftSegment, after previous: TimeShiftSegment?) -> Int {
        let begins = previous.map { $0.context !== segment.context } ?? true
        return segment.byteCount + (begins ? segment.context.byteCount : 0)
    }

    /// The bytes that all take, measured anew.
    var measured: Int {
        var total = 0
        for index in all.indices {
            total += size(of: all[index], after: index > 0 ? all[index - 1] : nil)
        }
        return total
    }

    /// Returns how many of the oldest segments are beyond a limit of bytes; never the newest.
    func excessCount(over limit: Int) -> Int {
        var excess = byteCount - limit
        var count = 0
        while excess > 0, count < all.count - 1 {
            excess -= all[count].byteCount
            let (context, next) = (all[count].context, all[count + 1].context)
            if context !== next { excess -= context.byteCount }
            count += 1
        }
        return count
    }
}

/// The identity of a segment's bytes at the origin: URI and byte range.
struct SegmentName: Hashable {
    let uri: [UInt8]
    let range: SubRange?

    init(_ uri: [UInt8], _ range: SubRange?) {
        self.uri = uri
        self.range = range
    }
}
