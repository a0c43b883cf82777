import Numbers
import URISyntax

/// Dates of HTTP fields as seconds since 1970-01-01 00:00:00 UTC, without leap seconds (RFC 9110
/// section 5.6.7).
package enum HTTPDate {
    /// The seconds of 9999-12-31 23:59:59, the last date that can be formatted.
    package static let latest: Int64 = 253_402_300_799

    /// Formats a date as IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// `seconds` is clamped to 0 to `latest`.
    package static func format(_ seconds: Int64) -> String {
        let seconds = min(max(seconds, 0), latest)
        let days = seconds / 86400
        let time = seconds % 86400
        let date = civil(days: days)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(29)
        // 1970-01-01 was a Thursday.
        bytes.append(contentsOf: weekdays[Int((days + 4) % 7)].utf8.prefix(3))
        bytes.append(contentsOf: ", ".utf8)
        appendDecimal(date.day, width: 2, to: &bytes)
        bytes.append(ASCII.space)
        bytes.append(contentsOf: months[Int(date.month - 1)].utf8)
        bytes.append(ASCII.space)
        appendDecimal(date.year, width: 4, to: &bytes)
        bytes.append(ASCII.space)
        appendDecimal(time / 3600, width: 2, to: &bytes)
        bytes.append(ASCII.colon)
        appendDecimal(time / 60 % 60, width: 2, to: &bytes)
        bytes.append(ASCII.colon)
        appendDecimal(time % 60, width: 2, to: &bytes)
        bytes.append(contentsOf: " GMT".utf8)
        return bytes[...].text
    }

    /// Parses a date in any of the three formats: IMF-fixdate, RFC 850 and asctime.
    ///
    /// Case is ignored, as RFC 9111 section 4.2 recommends for caches; the weekday need not match
    /// the date. A leap second counts as the second before it.
    ///
    /// - Parameters:
    ///   - text: The field value.
    ///   - now: The current time in seconds since 1970, to interpret a year of two digits as at
    ///     most 50 years ahead. Without it, 70 to 99 are in the 20th century.
    /// - Returns: Seconds since 1970, negative before; nil for any other text, including other time
    ///   zones than GMT.
    package static func parse(_ text: String, now: Int64? = nil) -> Int64? {
        if let seconds = usual(text.utf8.span) { return seconds }
        let bytes = Array(text.utf8)
        // The longest is `Wednesday, 06-Nov-94 08:49:37 GMT`. A comma in this place belongs to an
        // IMF-fixdate, and this is none.
        guard bytes.count >= 24, bytes.count <= 33, bytes[3] != ASCII.comma else { return nil }
        if bytes[3] == ASCII.space { return parseAsctime(bytes) }
        return parseRFC850(bytes, now: now)
    }

    /// Parses an IMF-fixdate only, without an allocation: stored heads have two or three of them,
    /// and a hit on an object that is not open parses them all.
    private static func usual(_ bytes: Span<UInt8>) -> Int64? {
        guard bytes.count == 29, bytes[3] == ASCII.comma, bytes[4] == ASCII.space,
            bytes[7] == ASCII.space, bytes[11] == ASCII.space, bytes[16] == ASCII.space,
            bytes[19] == ASCII.colon, bytes[22] == ASCII.colon,
            packed(bytes, 25, 4) == packedZone,
            packedWeekdays.contains(packed(bytes, 0, 3)),
            let month = packedMonths.firstIndex(of: packed(bytes, 8, 3)),
            let day = number(bytes, 5, 2), let year = number(bytes, 12, 4),
            let hour = number(bytes, 17, 2), hour < 24,
            let minute = number(bytes, 20, 2), minute < 60,
            let second = number(bytes, 23, 2), second <= 60
        else { return nil }
        return seconds(
            Civil(year: year, month: Int64(month) + 1, day: day),
            time: hour * 3600 + minute * 60 + min(second, 59))
    }

    // Inlined, so that the offsets are constants and only the length is checked.
    @inline(__always)
    private static func packed(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt32 {
        var packed: UInt32 = 0
        for index in start..<(start + count) {
            packed = packed << 8 | UInt32(ASCII.lowercased(bytes[index]))
        }
        return packed
    }

    @inline(__always)
    private static func number(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> Int64? {
        var value: Int64 = 0
        for index in start..<(start + count) {
            guard ASCII.isDigit(bytes[index]) else { return nil }
            value = value * 10 + Int64(bytes[index] &- 0x30)
        }
        return value
    }

    // MARK: Formats

    /// Parses `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func parseRFC850(_ bytes: [UInt8], now: Int64?) -> Int64? {
        guard let comma = bytes.firstIndex(of: ASCII.comma), bytes.count == comma + 24,
            isWeekday(bytes[0..<comma]), bytes[comma + 1] == ASCII.space,
            bytes[comma + 4] == 0x2D, bytes[comma + 8] == 0x2D, bytes[comma + 11] == ASCII.space,
            hasZone(bytes[(comma + 20)...]), let day = number(bytes[(comma + 2)..<(comma + 4)]),
            let month = month(bytes[(comma + 5)..<(comma + 8)]),
            let digits = number(bytes[(comma + 9)..<(comma + 11)]),
            let time = time(bytes[(comma + 12)..<(comma + 20)])
        else { return nil }
        return seconds(
            Civil(year: fullYear(digits, now: now), month: month, day: day), time: time)
    }

    /// Parses `Sun Nov  6 08:49:37 1994`.
    private static func parseAsctime(_ bytes: [UInt8]) -> Int64? {
        let dayStart = bytes[8] == ASCII.space ? 9 : 8
        guard bytes.count == 24, isWeekday(bytes[0..<3]), bytes[7] == ASCII.space,
            bytes[10] == ASCII.space, bytes[19] == ASCII.space, let month = month(bytes[4..<7]),
            let day = number(bytes[dayStart..<10]), let time = time(bytes[11..<19]),
            let year = number(bytes[20..<24])
        else { return nil }
        return seconds(Civil(year: year, month: month, day: day), time: time)
    }

    // MARK: Parts

    private static let weekdays = [
        "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
    ]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Packs up to four characters in lower case into one number: dates are parsed on every hit,
    /// and building strings of their parts took a fifth of its time.
    private static func packed(_ bytes: some Collection<UInt8>) -> UInt32 {
        bytes.reduce(0 as UInt32) { $0 << 8 | UInt32(ASCII.lowercased($1)) }
    }

    private static let packedWeekdays = weekdays.map { packed($0.utf8.prefix(3)) }
    private static let packedMonths = months.map { packed($0.utf8) }
    private static let packedZone = packed(" GMT".utf8)

    private static func isWeekday(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count > 3 else { return packedWeekdays.contains(packed(bytes)) }
        return weekdays.contains { ASCII.equalIgnoringCase(bytes.text, $0) }
    }

    private static func month(_ bytes: ArraySlice<UInt8>) -> Int64? {
        packedMonths.firstIndex(of: packed(bytes)).map { Int64($0) + 1 }
    }

    private static func hasZone(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count == 4 && packed(bytes) == packedZone
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
        DecimalDigits(bytes).number
    }

    /// Parses `08:49:37` as seconds of the day.
    private static func time(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let start = bytes.startIndex
        guard bytes[start + 2] == ASCII.colon, bytes[start + 5] == ASCII.colon,
            let hour = number(bytes[start..<(start + 2)]), hour < 24,
            let minute = number(bytes[(start + 3)..<(start + 5)]), minute < 60,
            let second = number(bytes[(start + 6)..<(start + 8)]), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + min(second, 59)
    }

    private static func fullYear(_ digits: Int64, now: Int64?) -> Int64 {
        guard let now else { return digits < 70 ? 2000 + digits : 1900 + digits }
        let thisYear = civil(days: min(max(now, 0), latest) / 86400).year
        let year = thisYear / 100 * 100 + digits
        if year > thisYear + 50 { return year - 100 }
        return year <= thisYear - 50 ? year + 100 : year
    }

    // MARK: Calendar

    private struct Civil {
        let year: Int64
        let month: Int64
        let day: Int64
    }

    private static func seconds(_ date: Civil, time: Int64) -> Int64? {
        let isLeap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0)
        let length: Int64 =
            switch date.month {
            case 2: isLeap ? 29 : 28
            case 4, 6, 9, 11: 30
            default: 31
            }
        guard date.day >= 1, date.day <= length else { return nil }
        return days(date) * 86400 + time
    }

    /// Returns the days since 1970-01-01 in the Gregorian calendar.
    ///
    /// Years are counted from March, so that the leap day is the last of its year, in eras of 400
    /// years, which are all alike.
    private static func days(_ date: Civil) -> Int64 {
        let year = date.month <= 2 ? date.year - 1 : date.year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let monthFromMarch = (date.month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + date.day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// Returns the date of a day, counted from 1970-01-01; the day must not be negative.
    private static func civil(days: Int64) -> Civil {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return Civil(
            year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month, day: day)
    }
}

extension Fields {
    /// The time by the clock of the origin when a response arrived, in seconds since 1970; nil
    /// without a valid Date.
    ///
    /// That clock may differ from ours by hours, and the times that the response names are by it.
    package var originTime: Int64? {
        guard let date = first(.date).flatMap({ HTTPDate.parse($0) }) else { return nil }
        // A cache on the way may have had the response for some time (RFC 9111 section 5.1).
        let age = first(.age).flatMap { text in
            ExternalNumber.integer(text, in: 0...Int64(86_400))
        }
        return date + (age ?? 0)
    }
}
