import Glibc
import Posix

/// The local time of day.
struct LocalTime {
    /// For example 2026-11-21.
    let day: String
    /// Minutes since midnight.
    let minute: Int
}

extension LocalTime {
    /// Reads a time in the time zone of the process.
    init(_ time: WallTime) {
        var seconds = time_t(time.seconds)
        var parts = tm()
        localtime_r(&seconds, &parts)
        let month = Int(parts.tm_mon) + 1
        let date = Int(parts.tm_mday)
        self.init(
            day:
                "\(Int(parts.tm_year) + 1900)-\(month < 10 ? "0" : "")\(month)-\(date < 10 ? "0" : "")\(date)",
            minute: Int(parts.tm_hour) * 60 + Int(parts.tm_min))
    }
}
