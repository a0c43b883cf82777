/// Age and lifetime of a stored response (RFC 9111 section 4.2).
import HTTP
package import Posix

extension StoredHead {
    /// The current age in seconds, 0 or more (RFC 9111 section 4.2.3).
    ///
    /// A wall clock that went back cannot make a response younger than it was on arrival.
    package func age(at now: WallTime) -> Int64 {
        let received = responseTime.seconds
        let date = fields.first(.date).flatMap { HTTPDate.parse($0) } ?? received
        let apparent = max(0, received - date)
        let delay = max(0, (responseTime - requestTime).nanoseconds / 1_000_000_000)
        let stated = Self.seconds(fields.first(.age)) ?? 0
        let initial = max(apparent, stated + delay)
        return initial + max(0, now.seconds - received)
    }

    /// How long the response is fresh, in seconds from its origination (RFC 9111 section 4.2.1).
    ///
    /// `isShared` says whether `s-maxage` counts.
    package func lifetime(isShared: Bool) -> Int64 {
        let control = CacheControl(fields)
        if isShared, let shared = control.sharedMaxAge { return shared }
        if let maxAge = control.maxAge { return maxAge }
        let date = fields.first(.date).flatMap { HTTPDate.parse($0) } ?? responseTime.seconds
        if let expires = fields.first(.expires) {
            // A malformed date, "0" included, is one in the past (RFC 9111 section 5.3).
            guard fields.count(of: .expires) == 1, let at = HTTPDate.parse(expires) else {
                return 0
            }
            return max(0, at - date)
        }
        return heuristicLifetime(control, date: date)
    }

    /// A tenth of the time since the last change, a day at most (RFC 9111 section 4.2.2).
    private func heuristicLifetime(_ control: CacheControl, date: Int64) -> Int64 {
        let heuristic: Set<UInt16> = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
        guard heuristic.contains(status.rawValue) || control.public,
            let modified = fields.first(.lastModified).flatMap({ HTTPDate.parse($0) })
        else { return 0 }
        return min(86_400, max(0, (date - modified) / 10))
    }

    private static func seconds(_ text: String?) -> Int64? {
        guard let text, !text.isEmpty, text.utf8.allSatisfy(HTTP.ASCII.isDigit) else { return nil }
        return Int64(text).map { min($0, CacheControl.maximumSeconds) }
            ?? CacheControl.maximumSeconds
    }
}
