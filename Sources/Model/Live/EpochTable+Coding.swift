import HLS
import Numbers
import Posix
import Routing

/// What is kept of a live list across restarts, as one line of numbers. Pure.
extension EpochTable.List {
    /// Numbers in one line, with a version before them.
    package var encoded: [UInt8] {
        let dated = dates.max { $0.key < $1.key }
        let numbers = [
            2, Int64(epoch.number), Int64(start), Int64(end), targetDuration.nanoseconds,
            Int64(discontinuitySequence), received.nanoseconds,
        ]
        let date: [Int64] = dated.map { [1, Int64($0.key), Int64($0.value)] } ?? [0, 0, 0]
        let sections: [Int64] = sections.flatMap { [Int64($0.number), Int64($0.name)] }
        return Array((numbers + date + sections).map(String.init).joined(separator: " ").utf8)
    }

    /// Reads what `encoded` gave; nil for anything else, and for numbers that no list can have.
    package init?(encoded bytes: [UInt8]) {
        let numbers = String(decoding: bytes, as: UTF8.self).split(separator: " ")
            .compactMap { OutsideNumber.integer($0, in: Int64.min...Int64.max) }
        let sequence = 0...Int64(OutsideNumber.largest) * 4
        // Version 1 has no sections, and a date only where one is known.
        let isOld = numbers.first == 1 && (numbers.count == 7 || numbers.count == 9)
        let isNew = numbers.first == 2 && numbers.count >= 10 && numbers.count.isMultiple(of: 2)
        guard isOld || isNew,
            sequence.contains(numbers[2]), sequence.contains(numbers[3]),
            // As long as playlists may say that a segment is.
            (0...500_000_000_000_000_000).contains(numbers[4]), sequence.contains(numbers[5])
        else { return nil }
        epoch = Epoch(number: UInt32(clamping: numbers[1]))
        start = Int(numbers[2])
        end = Int(numbers[3])
        targetDuration = Interval(nanoseconds: numbers[4])
        discontinuitySequence = Int(numbers[5])
        received = WallTime(nanoseconds: numbers[6])
        let dated = isOld ? numbers.dropFirst(7) : numbers[7] == 1 ? numbers[8...9] : []
        if let number = dated.first, let date = dated.last {
            guard sequence.contains(number) else { return nil }
            dates = [Int(number): DateTime(milliseconds: Int(date)).milliseconds]
        }
        guard isNew else { return }
        for index in stride(from: 10, to: numbers.count, by: 2) {
            guard sequence.contains(numbers[index]) else { return nil }
            sections.append(
                LiveSection(
                    number: Int(numbers[index]), name: UInt32(clamping: numbers[index + 1])))
        }
    }
}
