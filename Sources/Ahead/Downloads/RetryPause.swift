import Posix

/// The pauses of a download whose fetches fail: they grow, and start anew after a success.
struct RetryPause: Sendable, Equatable {
    /// The longest pause, in seconds.
    static let longest: Int64 = 30

    /// The longest pause that an origin may ask for, in seconds: the number may be a mistake.
    static let longestAsked: Int64 = 300

    /// What an HTML page came in place of; the value is the most pauses in a row after such pages.
    enum Page: Int {
        /// An hour: nothing shows yet that the URL is that of a title.
        case playlist = 120
        /// Eight hours: a night in which nobody signs in to a captive portal.
        case part = 960
    }

    private var failures = 0
    /// The pauses after pages since the last success.
    private var pages: [Page: Int] = [:]

    /// Counts a pause after an HTML page.
    ///
    /// - Returns: false if there were as many as there may be.
    mutating func mayFollow(_ page: Page) -> Bool {
        let count = pages[page, default: 0]
        guard count < page.rawValue else { return false }
        pages[page] = count + 1
        return true
    }

    /// Returns the pause after a failure: one second, then two, up to half a minute.
    ///
    /// - Parameter asked: the seconds that the origin asked for (`Retry-After`); nil if it did not.
    /// - Returns: the longer one of its own pause and the origin's.
    mutating func next(asked: Int64? = nil) -> Interval {
        defer { failures = min(failures + 1, 5) }
        let own = min(Self.longest, Int64(1) << Int64(failures))
        return .seconds(max(own, min(asked ?? 0, Self.longestAsked)))
    }

    /// Starts anew: a fetch succeeded, or a client asks to go on.
    mutating func reset() {
        failures = 0
        pages = [:]
    }
}
