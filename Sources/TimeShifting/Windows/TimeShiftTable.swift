// The windows of live playlists that reach farther back than the origin's, by session and name of
// the playlist.
//
// A session that was entered with `dvr=` has one `ShiftedList` for each of its media playlists.
// Every fetched window of the origin is merged into it, whether fetched for a player or by the
// `TimeShiftKeeper`, which continues for a while after the last player. The playlists for players
// are written from it.
package import HLS
import Library
package import Logging
package import Model
import Routing
package import Store
import Synchronization
package import URISyntax

/// The table of time shift windows.
///
/// Can be used from any thread. A list that was not used for long is kept only on disk.
package final class TimeShiftTable: Sendable {
    let lists = Mutex(Lists())
    let windows: TimeShiftFiles
    private let recorded: TimeShiftFiles
    package let store: ObjectStore
    package let names: ResourceNames
    package let live: LiveMemory
    package let memory: PlaylistMemory
    package let counters: Counters
    /// Removes segments that have left windows.
    package let thread: TimeShiftThread
    /// Which hosts may be private.
    private let settings: ProxySettings
    let log: Logger
    /// The purges and clears of the store that were noted.
    private let knownRemovals = Atomic<Int>(0)

    /// Creates the table; snapshots are in the folder of the store, each kind in its own folder.
    package init(
        store: ObjectStore, names: ResourceNames, live: LiveMemory, memory: PlaylistMemory,
        counters: Counters, thread: TimeShiftThread, settings: ProxySettings, log: Logger
    ) {
        self.store = store
        self.names = names
        self.live = live
        self.memory = memory
        self.counters = counters
        self.thread = thread
        self.settings = settings
        self.log = log
        let folder = store.folderPath
        windows = TimeShiftFiles(folder: folder + "/windows", log: log)
        recorded = .ofRecordings(in: folder, log: log)
    }

    /// Returns the snapshot folder of a session; recordings have a permanent one.
    func files(of session: Session) -> TimeShiftFiles {
        session.shift.recording == nil ? windows : recorded
    }

    /// Returns the list of a playlist with its saved window; reads a file the first time.
    ///
    /// Blocks once for each list and run, and again after a quarter of an hour without use: about
    /// 0.1 s for a day of segments of 4 s. Callers must not be on a server loop.
    ///
    /// - Returns: the list. One whose saved window cannot be read now is in no table, has no name
    ///   and is not saved, which would replace that window: `isUnread` is true, and a later call
    ///   tries again, or sets the file aside.
    package func list(_ url: AbsoluteURL, of session: Session) -> ShiftedList {
        let version = names.keys.version
        let name = name(of: url, in: session)
        if let known = lists.withLock({ $0[name] }) { return known }
        // It may be in memory under the name that former key rules gave it.
        renameLists()
        if let known = lists.withLock({ $0[name] }) { return known }
        let saved = saved(url, of: session, named: name)
        let read = ShiftedList(
            url: url.withoutDirectives, session: session, name: name,
            shift: saved?.shift ?? TimeShift(limits: session.shift.limits))
        if saved?.isNamed == false { read.state.withLock { $0.isUnsaved = true } }
        return lists.withLock { lists in
            if let known = lists[name] { return known }
            guard saved?.isUnread != true else {
                read.leaveUnread()
                return read
            }
            lists.noteRead(name)
            lists[name] = read
            if lists.keyVersion != version { lists.keyVersion = nil }
            return read
        }
    }

    /// Returns the list of a playlist if it is in memory.
    package func known(_ url: AbsoluteURL, of session: Session) -> ShiftedList? {
        let name = name(of: url, in: session)
        return lists.withLock { $0[name] }
    }

    /// Has all lists checked anew if objects were purged or cleared since the last call: their
    /// playlists would name removed segments until the next check in turn.
    func noteRemovals() {
        let removals = store.orderedRemovals
        guard knownRemovals.exchange(removals, ordering: .relaxed) != removals else { return }
        for list in all { list.state.withLock { $0.isDoubtful = true } }
    }

    /// True if what came from a URL may come from a private host.
    func mayBePrivate(_ url: AbsoluteURL) -> Bool {
        settings.reachesPrivate && settings.mayBePrivate(url.asciiHost)
    }

    /// Removes a list from memory; code that still holds it would use a separate copy.
    package func forget(_ list: ShiftedList) {
        lists.withLock { lists in
            if let name = list.name, lists[name] === list { lists[name] = nil }
        }
    }
}

extension TimeShiftTable {
    /// Returns the epochs of a segment's URLs, at its number in the origin's last window.
    ///
    /// - Parameters:
    ///   - segment: the segment.
    ///   - session: the session of its list.
    ///   - list: the key of the origin's list.
    ///   - shared: the marks of another segment with the same keys and initialization section, whose
    ///     URLs are then not looked up again.
    /// - Returns: the marks.
    package func marks(
        of segment: TimeShiftSegment, _ session: Session, in list: ObjectKey,
        shared: TimeShiftSegment.Marks? = nil
    ) -> TimeShiftSegment.Marks {
        func mark(_ url: AbsoluteURL?, _ role: ResourceRole) -> UInt32 {
            guard let url else { return 0 }
            let name = ObjectKey(names.keys.cacheKey(of: url, session: session, role: role))
            return live.epoch(of: name, at: segment.originNumber, in: list).number
        }
        return TimeShiftSegment.Marks(
            segment: mark(segment.url, .segment),
            map: shared?.map ?? mark(segment.mapURL, .initialization),
            keys: shared?.keys ?? segment.keyURLs.map { mark($0, .key) })
    }
}
