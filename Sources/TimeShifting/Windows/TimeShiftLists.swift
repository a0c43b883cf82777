import HLS
import Library
import Model
import Posix
package import Routing
import Synchronization

extension TimeShiftTable {
    /// The lists in memory, under the names that the key rules of a version give them, by session:
    /// thousands of sessions may have some, and most questions concern one.
    struct Lists {
        private var bySession: [SessionID: [WindowName: ShiftedList]] = [:]
        /// The version of the key rules; nil if some names may be those of an earlier one.
        var keyVersion: UInt64?
        /// The windows that could not be read when they were last looked for, and the first and the
        /// last time of that.
        private var unread: [WindowName: (since: Monotonic, last: Monotonic)] = [:]
        private static let mostUnread = 1_024
        /// A failure after a longer pause counts as a new one; far longer than the pause between
        /// reloads.
        private static let longestPause = Interval.seconds(120 as Int64)

        subscript(name: WindowName) -> ShiftedList? {
            get { bySession[name.session]?[name] }
            set {
                bySession[name.session, default: [:]][name] = newValue
                if bySession[name.session]?.isEmpty == true { bySession[name.session] = nil }
            }
        }

        var all: [ShiftedList] { bySession.values.flatMap { $0.values } }

        func of(_ session: SessionID) -> [ShiftedList] {
            bySession[session].map { Array($0.values) } ?? []
        }

        /// Records that a saved window cannot be read; returns for how long, nil the first time.
        mutating func noteUnread(_ name: WindowName, at now: Monotonic) -> Interval? {
            let known = unread[name].flatMap { now - $0.last <= Self.longestPause ? $0.since : nil }
            if unread[name] == nil, unread.count >= Self.mostUnread { unread = [:] }
            unread[name] = (since: known ?? now, last: now)
            return known.map { now - $0 }
        }

        /// Records that a saved window was read, or set aside.
        mutating func noteRead(_ name: WindowName) { unread[name] = nil }

        mutating func removeAll() { bySession.removeAll(keepingCapacity: true) }
    }

    /// All lists in memory.
    package var all: [ShiftedList] { lists.withLock { $0.all } }

    /// The lists of a session that are in memory.
    package func all(of session: SessionID) -> [ShiftedList] {
        lists.withLock { $0.of(session) }
    }

    /// Returns the most advanced rendition of the same stream, for a list to keep in step with.
    ///
    /// A session may play several streams, the channels of a list for instance. If it is known
    /// which multivariant playlist names the list, the others of that one count, or else those of
    /// which it is not known.
    ///
    /// No window is copied but the one that is returned: a merge into a window whose copy is held
    /// would copy it whole.
    func sibling(of list: ShiftedList) -> TimeShift? {
        var others = all(of: list.session.id).filter { $0 !== list }.compactMap { other in
            other.progress.map { (list: other, progress: $0) }
        }
        guard !others.isEmpty else { return nil }
        let parents = memory.parents(of: [list.mark] + others.map { $0.list.mark })
        if let parent = parents.first ?? nil {
            let known = parents.dropFirst().contains(parent) ? parent : nil
            others = zip(others, parents.dropFirst()).filter { $1 == known }.map(\.0)
        }
        return others.max { $0.progress < $1.progress }?.list.shift
    }
}

extension ShiftedList {
    /// The epoch and the number of the newest segment; nil without segments.
    fileprivate var progress: (Int, Int)? {
        state.withLock { state in
            state.shift.segments.last.map { (state.shift.epoch, $0.number) }
        }
    }

    /// The mark of its URL in `PlaylistMemory`.
    fileprivate var mark: Int {
        state.withLock { state in
            if let mark = state.mark { return mark }
            let made = PlaylistMemory.mark(state.url, session.id)
            state.mark = made
            return made
        }
    }
}
