import Library
import Numbers

/// The bytes downloaded on one day, and what the rules for downloads allow on it.
struct DownloadDay: Equatable {
    /// The bytes after which the day is saved while downloads run.
    static let savedEvery: Int64 = 8 << 20

    private(set) var day: String
    private(set) var bytes: Int64
    private var unsavedBytes: Int64 = 0

    init(day: String, bytes: Int64) {
        self.day = day
        self.bytes = bytes
    }

    /// Counts fetched bytes.
    mutating func count(_ bytes: Int64) {
        self.bytes = self.bytes.addingSaturated(bytes)
        unsavedBytes = unsavedBytes.addingSaturated(bytes)
    }

    /// Returns the reason that stops all downloads now; nil without one.
    ///
    /// The first call of a day outside the quiet hours resets the bytes of the day.
    mutating func obstacle(_ rules: DownloadRules, at now: LocalTime) -> String? {
        if let hours = rules.quietHours, hours.contains(minute: now.minute) {
            return "quiet hours last until \(hours.endText)"
        }
        if day != now.day { (day, bytes) = (now.day, 0) }
        if let budget = rules.dailyBytes, bytes >= budget {
            return "the day's budget of \(budget) bytes is used up; downloads continue tomorrow"
        }
        return nil
    }

    /// True if the daily budget is not used up.
    func hasBudget(_ rules: DownloadRules) -> Bool {
        rules.dailyBytes.map { bytes < $0 } ?? true
    }

    /// Returns true if the bytes are to be saved now, and counts them as saved.
    ///
    /// With `atOnce` any new bytes suffice, otherwise more than `savedEvery`.
    mutating func beginsSaving(atOnce: Bool) -> Bool {
        guard unsavedBytes > (atOnce ? 0 : Self.savedEvery) else { return false }
        unsavedBytes = 0
        return true
    }
}
