import URISyntax

/// The stored media playlists of a title, told apart by the time of the stream that they show.
///
/// A player reloads only the live lists that it plays: the list of a variant that it has left keeps
/// the window of that time.
struct OfflineWindows {
    private var lists: [AbsoluteURL: OfflineList]
    /// The number of times that were taken.
    private var taken = 0

    init(_ lists: [AbsoluteURL: OfflineList]) {
        self.lists = lists
    }

    /// True if no list that is or was live remains.
    var isEmpty: Bool { !lists.values.contains { $0.slides } }

    /// Removes the live lists of the latest time.
    ///
    /// - Returns: these lists, aligned on one time line, and all lists that were never live.
    mutating func takeLatest() -> [AbsoluteURL: OfflineList] {
        guard let newest = lists.values.filter({ $0.slides }).max(by: { $0.precedes($1) }) else {
            return lists
        }
        var latest: [AbsoluteURL: OfflineList] = [:]
        var near: [AbsoluteURL] = []
        var first = newest.start
        for (url, list) in lists {
            if list.isNear(newest) {
                near.append(url)
                first = min(first, list.start)
            } else if list.slides, list.isOfOtherTime(than: newest) {
                continue
            }
            latest[url] = list
        }
        for (url, list) in latest where list.slides {
            lists[url] = nil
            latest[url]?.timeIndex = taken
        }
        taken += 1
        for url in near { latest[url]?.align(toNumber: first) }
        return latest
    }
}

extension OfflineList {
    /// True if the other list was received later; of lists received together, if it begins later.
    fileprivate func precedes(_ other: OfflineList) -> Bool {
        let (own, others) = (received ?? -Double.infinity, other.received ?? -Double.infinity)
        return (own, start, segments.count) < (others, other.start, other.segments.count)
    }

    /// True if the windows overlap or touch by their numbers.
    fileprivate func isNear(_ other: OfflineList) -> Bool {
        abs(start - other.start) <= max(segments.count, other.segments.count)
    }

    /// True if two windows that are not near each other were received at different times of the
    /// stream; otherwise each has its own numbering.
    ///
    /// Windows of one numbering that do not overlap were received further apart than a window lasts,
    /// those of playing renditions within a few target durations: half a window is between them.
    fileprivate func isOfOtherTime(than other: OfflineList) -> Bool {
        guard let received, let others = other.received else { return false }
        return abs(received - others) > max(length, other.length) / 2
    }

    /// True if two lists of a title can be played together.
    ///
    /// Those that were taken for windows of different times can if each has its own numbering and
    /// they were received within a few windows. In one numbering, windows are as far apart by their
    /// numbers as by the times at which they were received: these play at different times.
    func mayShareTime(with other: OfflineList) -> Bool {
        guard slides, other.slides, timeIndex != other.timeIndex else { return true }
        guard let received, let others = other.received, !isNear(other) else { return false }
        let (elapsed, window) = (received - others, max(length, other.length))
        guard abs(elapsed) <= Self.mostWindows * window else { return false }
        let numbers = Double(start) - Double(other.start)
        return abs(numbers * length / Double(max(segments.count, 1)) - elapsed) > window
    }

    /// Windows that were received further apart than this many of them are of different times.
    private static let mostWindows = 3.0
}
