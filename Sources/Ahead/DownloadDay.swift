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

    /// Returns the reason that stops all downloads now, nil without one; begins a new day at its
    /// first time outside of the quiet hours.
    mutating func obstacle(_ rules: DownloadRules, at now: LocalTime) -> String? {
        if let hours = rules.quietHours, hours.contains(minute: now.minute) {
            return "quiet hours last until \(hours.endText)"
        }
        if day != now.day { (day, bytes) = (now.day, 0) }
        if let budget = rules.dailyBytes, bytes >= budget {
            return "the day's budget of \(budget) bytes is used up; it goes on tomorrow"
        }
        return nil
    }

    /// True if the daily budget is not used up.
    func hasBudget(_ rules: DownloadRules) -> Bool {
        rules.dailyBytes.map { bytes < $0 } ?? true
    }

    /// Decides whether the bytes are to be saved, and notes that they are: without `atOnce`, only if
    /// there are many new ones.
    mutating func beginsSaving(atOnce: Bool) -> Bool {
        guard unsavedBytes > (atOnce ? 0 : Self.savedEvery) else { return false }
        unsavedBytes = 0
        return true
    }
}
