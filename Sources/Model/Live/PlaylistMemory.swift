// Facts of one playlist that other requests need: variables of the multivariant playlist for
// EXT-X-DEFINE:IMPORT, which lists it names as subtitles, whether a list has an EXT-X-MAP, which
// its delta updates omit, and whether a session plays a live stream, for resources that no list of
// segments names: multivariant playlists, keys, and segments that have left a time shift window.
// `LiveMemory` knows the lists whose segments lose their value.
import CachePolicy
package import DurableState
package import Routing
import Synchronization
package import URISyntax

/// Facts of playlists, for the 1,024 most recent sessions or lists.
///
/// Variables are kept for 16,384 sessions, since players do not reload the multivariant playlist;
/// those not used for longest are dropped first. Those of the 1,024 sessions that defined theirs
/// last survive a restart; which of several playlists defined them does not. The other facts are
/// held in memory only: until the multivariant playlist or a full list was read after a restart,
/// the links of subtitles and of delta updates without extensions have that of a transport stream.
package final class PlaylistMemory: Sendable {
    /// Identifies a media playlist, whatever its delivery directives.
    package struct Key: Hashable, Sendable {
        private let text: String
        private let session: SessionID

        package init(list: AbsoluteURL, session: SessionID) {
            text = list.withoutDirectives.normalisedForKey
            self.session = session
        }
    }

    /// What the multivariant playlists of one session have defined.
    ///
    /// There may be several, of interstitials for instance. The first one read is the session's own.
    struct Definitions {
        let list: String
        var own: [String: String]
        var others: [String: String] = [:]
        /// What each playlist of this run has defined, by its mark.
        private(set) var byParent: [Int: [String: String]] = [:]
        /// The marks, in the order in which the playlists were read last.
        private var parents: [Int] = []

        init(list: String, own: [String: String]) {
            self.list = list
            self.own = own
        }

        /// Notes what a playlist has defined; beyond the limits, the definitions of the playlists
        /// not read for longest are forgotten first.
        mutating func note(_ variables: [String: String], of parent: Int) {
            if variables.isEmpty {
                guard byParent.removeValue(forKey: parent) != nil else { return }
                return parents.removeAll { $0 == parent }
            }
            let isKnown = byParent.updateValue(variables, forKey: parent) != nil
            if parents.last != parent {
                if isKnown { parents.removeAll { $0 == parent } }
                parents.append(parent)
            }
            var bytes = byParent.values.reduce(0) { $0 + PlaylistMemory.byteCount(of: $1) }
            while bytes > PlaylistMemory.mostOtherBytes
                || parents.count > PlaylistMemory.mostParents,
                let index = parents.firstIndex(where: { $0 != parent })
            {
                let oldest = byParent.removeValue(forKey: parents.remove(at: index))
                bytes -= PlaylistMemory.byteCount(of: oldest ?? [:])
            }
        }

        /// True if lists import the same variables from both, in whatever order the playlists were
        /// read.
        func isAlike(_ other: Self) -> Bool {
            list == other.list && own == other.own && others == other.others
                && byParent == other.byParent
        }

        /// The approximate number of bytes in memory.
        var byteCount: Int {
            byParent.values.reduce(Self.size(of: own) + Self.size(of: others) + list.utf8.count) {
                $0 + Self.size(of: $1)
            }
        }

        private static func size(of variables: [String: String]) -> Int {
            PlaylistMemory.byteCount(of: variables) + 128 * (variables.count + 1)
        }

        var all: [String: String] { others.isEmpty ? own : own.merging(others) { own, _ in own } }
    }

    struct Tables {
        /// The sessions with variables.
        private var variables = RecentlyUsedMap<SessionID, Definitions>(
            mostKeys: PlaylistMemory.mostSessions, mostBytes: PlaylistMemory.mostBytes)
        /// The sessions whose playlists define none: most, which must not displace the others.
        private var plain = RecentMap<SessionID, Definitions>(capacity: 1_024)
        /// The sessions with rows in the database.
        private var saved = RecentMap<SessionID, Bool>(capacity: VariablesRecord.mostSessions)
        /// The mark of the multivariant playlist that named a list last, by the mark of the list.
        var parents = RecentMap<Int, Int>(capacity: 8_192)
        var listsWithMap = RecentMap<Key, Bool>(capacity: 1_024)
        var subtitleLists = RecentMap<Key, Bool>(capacity: 1_024)
        var liveSessions = RecentMap<SessionID, Bool>(capacity: 1_024)

        /// Returns what a session's playlists have defined, and notes that it is used.
        mutating func definitions(of session: SessionID) -> Definitions? {
            variables.use(session) ?? plain[session]
        }

        mutating func keep(_ made: Definitions, of session: SessionID) {
            if made.all.isEmpty, variables[session] == nil {
                plain[session] = made
            } else {
                variables.keep(made, bytes: made.byteCount, for: session)
            }
        }

        /// Notes that a session has a row; returns the session whose row is to be removed for it.
        mutating func noteSaved(_ session: SessionID) -> SessionID? {
            saved.keep(true, for: session)
        }
    }

    /// The most sessions whose variables are kept, and the most bytes of all of them.
    private static let mostSessions = 16_384
    private static let mostBytes = 64 << 20
    /// The most lists that are noted of one multivariant playlist.
    package static let mostChildren = 1_024
    /// The most bytes of the variables of further playlists; one playlist has no more than this.
    private static let mostOtherBytes = 64 << 10
    /// The most playlists of a session whose variables are told apart.
    static let mostParents = 256
    let tables: Mutex<Tables>
    private let database: StateDatabase
    private let changes = Atomic<UInt64>(0)

    /// Grows with every change after which a list may be rewritten differently: other variables, or
    /// the knowledge that it is one of subtitles.
    package var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Restores the variables of earlier runs; blocks on the disk.
    package init(database: StateDatabase) {
        self.database = database
        var tables = Tables()
        for record in database.records(VariablesRecord.self) {
            let session = SessionID(record.session)
            tables.keep(Definitions(list: record.list, own: record.variables), of: session)
            _ = tables.noteSaved(session)
        }
        self.tables = Mutex(tables)
    }

    private static func byteCount(of variables: [String: String]) -> Int {
        variables.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    }

    /// Returns the mark that stands for a list in the tables; valid in this run only.
    package static func mark(_ list: AbsoluteURL, _ session: SessionID) -> Int {
        Key(list: list, session: session).hashValue
    }

    /// Returns the variables that `knownVariables(of:in:)` does; empty if no multivariant playlist
    /// was read.
    package func variables(
        of session: SessionID, in list: AbsoluteURL? = nil
    ) -> [String: String] {
        knownVariables(of: session, in: list) ?? [:]
    }

    /// Returns the variables that a session's multivariant playlists have defined; nil if none was
    /// read.
    ///
    /// If several playlists define a name, the definition of the one that named `list` counts, the
    /// media playlist that imports it; otherwise that of the session's own.
    package func knownVariables(
        of session: SessionID, in list: AbsoluteURL? = nil
    ) -> [String: String]? {
        guard let known = tables.withLock({ $0.definitions(of: session) }) else { return nil }
        guard let list, !known.byParent.isEmpty else { return known.all }
        let mark = Self.mark(list, session)
        guard let parent = tables.withLock({ $0.parents[mark] }),
            let nearest = known.byParent[parent]
        else { return known.all }
        return known.all.merging(nearest) { _, nearest in nearest }
    }

    /// Keeps the variables of a multivariant playlist.
    ///
    /// - Parameters:
    ///   - variables: those that it defines.
    ///   - list: its URL; nil if the session's links carry them.
    ///   - session: the session that reads it.
    ///   - children: the playlists that it names; `mostChildren` of them count.
    /// - Returns: true if these may import other variables than before.
    @discardableResult
    package func remember(
        _ variables: [String: String], definedIn list: AbsoluteURL?, of session: SessionID,
        naming children: [AbsoluteURL] = []
    ) -> Bool {
        let mark = list.map { Self.mark($0, session) }
        let marks = children.prefix(Self.mostChildren).map { Self.mark($0, session) }
        let name = list?.normalisedForKey ?? ""
        let isNews = tables.withLock { tables -> Bool in
            let known = tables.definitions(of: session)
            let hasVariables = !variables.isEmpty || known?.all.isEmpty == false
            var hasNewParent = false
            if let mark {
                for child in marks {
                    if hasVariables, tables.parents[child] != mark { hasNewParent = true }
                    tables.parents[child] = mark
                }
            }
            var made = known ?? Definitions(list: name, own: variables)
            let isOwn = made.list == name
            // After a restart, the session's own variables include those that further playlists
            // defined.
            let others = isOwn ? made.own.filter { variables[$0.key] == nil } : variables
            made.others.merge(others) { _, new in new }
            if Self.byteCount(of: made.others) > Self.mostOtherBytes { made.others = others }
            if isOwn { made.own = variables }
            if let mark { made.note(variables, of: mark) }
            let isAlike = known.map { made.isAlike($0) } ?? false
            tables.keep(made, of: session)
            guard !isAlike else { return hasNewParent }
            save(made, after: known, of: session, &tables)
            return hasVariables
        }
        if isNews { changes.add(1, ordering: .releasing) }
        return isNews
    }

    /// Queues the row of a session, under the lock: the rows of several threads are then queued in
    /// the order of their changes, and the next run has the last one.
    private func save(
        _ made: Definitions, after former: Definitions?, of session: SessionID,
        _ tables: inout Tables
    ) {
        guard made.list != former?.list || made.all != former?.all else { return }
        guard !made.all.isEmpty else {
            // Most playlists define none, and no row is written for them.
            if former?.all.isEmpty == false { forget(session) }
            return
        }
        if let outdated = tables.noteSaved(session) { forget(outdated) }
        database.put(
            VariablesRecord(session: session.number, list: made.list, variables: made.all))
    }

    /// Returns the mark of the multivariant playlist that named a list last in this run; nil if it
    /// is not known.
    package func parent(of list: AbsoluteURL, in session: SessionID) -> Int? {
        let mark = Self.mark(list, session)
        return tables.withLock { $0.parents[mark] }
    }

    /// Returns the marks of the multivariant playlists that named lists last, given the marks of
    /// the lists; nil for each list without a known one.
    package func parents(of marks: [Int]) -> [Int?] {
        tables.withLock { tables in marks.map { tables.parents[$0] } }
    }

    /// True if a multivariant playlist is the one that named a list last in this run.
    package func isParent(
        _ parent: AbsoluteURL, of list: AbsoluteURL, in session: SessionID
    ) -> Bool {
        self.parent(of: list, in: session) == Self.mark(parent, session)
    }

    private func forget(_ session: SessionID) {
        database.remove(VariablesRecord.self, key: [.integer(Int64(clamping: session.number))])
    }

    /// True if the full list has an EXT-X-MAP.
    package func hasMap(_ list: Key) -> Bool {
        tables.withLock { $0.listsWithMap[list] } ?? false
    }

    /// Notes that the full list has an EXT-X-MAP.
    package func rememberMap(_ list: Key) {
        tables.withLock { $0.listsWithMap[list] = true }
    }

    /// True if a multivariant playlist names the list as subtitles.
    package func isSubtitles(_ list: Key) -> Bool {
        tables.withLock { $0.subtitleLists[list] } ?? false
    }

    /// Notes that a multivariant playlist names these lists as subtitles.
    ///
    /// - Returns: the lists that were not known as subtitles.
    package func rememberSubtitles(
        _ lists: [AbsoluteURL], of session: SessionID
    ) -> [AbsoluteURL] {
        guard !lists.isEmpty else { return [] }
        let keys = lists.map { Key(list: $0, session: session) }
        let areNew = tables.withLock { tables -> [Bool] in
            var areNew: [Bool] = []
            for key in keys {
                areNew.append(tables.subtitleLists[key] == nil)
                tables.subtitleLists[key] = true
            }
            return areNew
        }
        let new = zip(lists, areNew).filter(\.1).map(\.0)
        if !new.isEmpty { changes.add(1, ordering: .releasing) }
        return new
    }

    /// True if the media playlist that the session read last is live; lists of channels do not
    /// count.
    ///
    /// A session may play several streams and films: `LiveMemory` knows which of them names a
    /// segment. This is for resources that no list of segments names (any more).
    package func isLive(_ session: SessionID) -> Bool {
        tables.withLock { $0.liveSessions[session] } ?? false
    }

    /// Notes whether a session's media playlist is live.
    package func remember(isLive: Bool, of session: SessionID) {
        tables.withLock { tables in
            guard isLive != tables.liveSessions[session] ?? false else { return }
            tables.liveSessions[session] = isLive
        }
    }
}
