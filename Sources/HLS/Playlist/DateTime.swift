import Numbers
import URISyntax

/// A date with time of day as playlists write it (ISO 8601), for EXT-X-PROGRAM-DATE-TIME.
///
/// Clamped to the years 0 to 9999, so that a written date can be parsed again and differences do
/// not overflow.
package struct DateTime: Hashable, Comparable, Sendable {
    /// Since 1970-01-01T00:00:00Z.
    package let milliseconds: Int

    /// From 0000-01-01T00:00:00.000Z to 9999-12-31T23:59:59.999Z.
    private static let range = -62_167_219_200_000...253_402_300_799_999

    package init(milliseconds: Int) {
        self.milliseconds = min(max(milliseconds, Self.range.lowerBound), Self.range.upperBound)
    }

    /// Parses `YYYY-MM-DDThh:mm:ss` with an optional fraction and an optional `Z` or offset.
    ///
    /// A date without an offset is in UTC, as players read it. Nil for any other text.
    package init?(_ bytes: ArraySlice<UInt8>) {
        var reader = Reader(bytes: DecimalNumber.trimmed(bytes))
        guard let year = reader.number(4), reader.take(0x2D), let month = reader.number(2),
            reader.take(0x2D), let day = reader.number(2), reader.take(0x54) || reader.take(0x74),
            let hour = reader.number(2), reader.take(0x3A), let minute = reader.number(2),
            reader.take(0x3A), let second = reader.number(2), let fraction = reader.fraction(),
            let offset = reader.offset(), reader.isAtEnd
        else { return nil }
        guard 1...12 ~= month, 1...31 ~= day, hour < 24, minute < 60, second < 61 else {
            return nil
        }
        let days = Self.days(year: year, month: month, day: day)
        self.init(
            milliseconds: (((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1000
                + fraction)
    }

    package static func < (left: DateTime, right: DateTime) -> Bool {
        left.milliseconds < right.milliseconds
    }

    package static func + (date: DateTime, duration: Duration) -> DateTime {
        let parts = duration.components
        let milliseconds = Int(parts.seconds).multipliedSaturated(by: 1000)
            .addingSaturated(Int(parts.attoseconds / 1_000_000_000_000_000))
        return DateTime(milliseconds: date.milliseconds.addingSaturated(milliseconds))
    }

    /// In UTC with milliseconds: `2031-05-06T07:08:09.010Z`.
    package var text: String {
        var output: [UInt8] = []
        append(to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends `text` without building a string: a playlist of one day holds tens of thousands of
    /// dates.
    func append(to output: inout [UInt8]) {
        let seconds = milliseconds.flooredQuotient(1000)
        let days = seconds.flooredQuotient(86_400)
        let ofDay = seconds - days * 86_400
        let (year, month, day) = Self.date(days: days)
        Self.append(year, 4, 0x2D, to: &output)
        Self.append(month, 2, 0x2D, to: &output)
        Self.append(day, 2, 0x54, to: &output)
        Self.append(ofDay / 3600, 2, 0x3A, to: &output)
        Self.append(ofDay / 60 % 60, 2, 0x3A, to: &output)
        Self.append(ofDay % 60, 2, 0x2E, to: &output)
        Self.append(milliseconds - seconds * 1000, 3, 0x5A, to: &output)
    }

    /// Appends a number, padded with zeros to a width, and the byte `end`.
    private static func append(
        _ number: Int, _ width: Int, _ end: UInt8, to output: inout [UInt8]
    ) {
        appendDecimal(Int64(number), width: width, to: &output)
        output.append(end)
    }

    // Days of the Gregorian calendar, counted from March so that the leap day comes last.

    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let era = shifted.flooredQuotient(400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func date(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = shifted.flooredQuotient(146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    /// A cursor over the text of a date.
    private struct Reader {
        var bytes: ArraySlice<UInt8>

        var isAtEnd: Bool { bytes.isEmpty }

        mutating func take(_ byte: UInt8) -> Bool {
            guard bytes.first == byte else { return false }
            bytes.removeFirst()
            return true
        }

        /// Parses exactly `count` digits.
        mutating func number(_ count: Int) -> Int? {
            guard bytes.count >= count,
                let value = DecimalDigits<Int>(bytes.prefix(count), upTo: .max).number
            else { return nil }
            bytes.removeFirst(count)
            return value
        }

        /// Parses a fraction in milliseconds; 0 without a fraction, nil for a point without digits.
        mutating func fraction() -> Int? {
            guard take(0x2E) || take(0x2C) else { return 0 }
            let digits = bytes.prefix(while: ASCII.isDigit)
            guard !digits.isEmpty else { return nil }
            bytes.removeFirst(digits.count)
            return DecimalDigits((digits.prefix(3) + [0x30, 0x30]).prefix(3), upTo: 999).number
        }

        /// Parses an offset in minutes east of UTC; 0 for `Z` and for no offset.
        mutating func offset() -> Int? {
            if isAtEnd || take(0x5A) || take(0x7A) { return 0 }
            let isWest = bytes.first == 0x2D
            guard take(0x2B) || take(0x2D), let hours = number(2) else { return nil }
            _ = take(0x3A)
            guard let minutes = isAtEnd ? 0 : number(2), hours < 24, minutes < 60 else {
                return nil
            }
            return (hours * 60 + minutes) * (isWest ? -1 : 1)
        }
    }
}

extension Int {
    fileprivate func flooredQuotient(_ divisor: Int) -> Int {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
