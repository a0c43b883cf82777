import Numbers

/// The rules for all downloads together.
package struct DownloadRules: Sendable, Equatable {
    /// Hours of the day without downloads.
    package struct Hours: Sendable, Equatable {
        /// Minutes since midnight; an end before the start is on the next day.
        package let start: Int
        package let end: Int

        /// Parses `18:00-23:30`; nil for anything else.
        package init?(_ text: String) {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 2, let start = Self.minute(parts[0]),
                let end = Self.minute(parts[1]), start != end
            else { return nil }
            self.start = start
            self.end = end
        }

        private static func minute(_ text: Substring) -> Int? {
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ (1...2).contains($0.utf8.count) }),
                let hour = ExternalNumber.integer(parts[0], in: 0...23),
                let minute = ExternalNumber.integer(parts[1], in: 0...59)
            else { return nil }
            return hour * 60 + minute
        }

        /// True if a minute of the day is within these hours.
        package func contains(minute: Int) -> Bool {
            start < end
                ? (start..<end).contains(minute) : minute >= start || minute < end
        }

        /// For example 23:30.
        package var endText: String {
            let minutes = end % 60
            return "\(end / 60):\(minutes < 10 ? "0" : "")\(minutes)"
        }
    }

    package var quietHours: Hours?
    /// The most bytes a day, from midnight to midnight; nil for no limit.
    package var dailyBytes: Int64?
    /// The most bytes a second, all downloads together; nil for no limit.
    package var rate: Int64?

    package init() {}
}
