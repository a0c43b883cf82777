import CachePolicy
import HLS
import Library
import Logging
import Model
import Posix
import Routing
import Store
import Synchronization
import URISyntax

/// The names of windows: those of the stored playlists that they are read from, so that another
/// signature or token in the URL of a list leads to the same window.
extension TimeShiftTable {
    /// Returns the name of a list's window by the key rules in force.
    ///
    /// The playlists of a recording name its lists under the same URLs for as long as it is kept,
    /// while key rules may change: these windows are named by URL.
    func name(of url: AbsoluteURL, in session: Session) -> WindowName {
        guard session.shift.recording == nil else {
            return WindowName(session: session.id, url: url)
        }
        let key = names.keys.cacheKey(of: url.withoutDirectives, session: session, role: .playlist)
        return WindowName(session: session.id, list: key.text)
    }

    /// What is known of the saved window of a list.
    struct SavedWindow {
        let shift: TimeShift
        /// False if it was found under the URL of its list.
        var isNamed = true
        /// True if there may be one, which cannot be read now; `shift` is empty then.
        var isUnread = false
    }

    /// Loads the saved window of a list; blocks on the disk.
    ///
    /// Looks under the URL of the list too: former versions named all windows so, and a window has
    /// this name if no rule changed the key of its URL when it was saved.
    ///
    /// One of a player that cannot be read for half a minute of reloads is set aside; a recording
    /// sets aside its own.
    ///
    /// - Returns: the window; nil without one.
    func saved(
        _ url: AbsoluteURL, of session: Session, named name: WindowName, now: Monotonic = .now()
    ) -> SavedWindow? {
        do throws(SystemError) {
            return try loaded(url, of: session, named: name)
        } catch {
            let duration = lists.withLock { $0.noteUnread(name, at: now) }
            if duration == nil {
                log.error(
                    "a saved window cannot be read now; if that lasts, delete its file",
                    metadata: ["error": "\(error)"])
            }
            let unread = SavedWindow(
                shift: TimeShift(limits: session.shift.limits), isUnread: true)
            guard session.shift.recording == nil, let duration,
                duration >= TimeShiftFiles.patience
            else { return unread }
            setAsideSaved(url, of: session)
            lists.withLock { $0.noteRead(name) }
            do throws(SystemError) {
                return try loaded(url, of: session, named: name)
            } catch {
                return unread
            }
        }
    }

    private func loaded(
        _ url: AbsoluteURL, of session: Session, named name: WindowName
    ) throws(SystemError) -> SavedWindow? {
        let files = files(of: session)
        let limits = session.shift.limits
        if let found = try files.load(name, limits: limits) { return SavedWindow(shift: found) }
        let former = WindowName(session: session.id, url: url)
        guard former != name, let found = try files.load(former, limits: limits) else { return nil }
        return SavedWindow(shift: found, isNamed: false)
    }

    /// Sets the saved window of a list aside that could not be read for too long, under each of its
    /// names.
    func setAsideSaved(_ url: AbsoluteURL, of session: Session) {
        let files = files(of: session)
        let both: Set = [name(of: url, in: session), WindowName(session: session.id, url: url)]
        for window in both {
            do throws(SystemError) {
                _ = try files.load(window, limits: session.shift.limits)
            } catch {
                files.setAside(window)
            }
        }
    }

    /// True if the stored playlist of a list was received after its window was saved; blocks on the
    /// disk.
    func isStoredLater(_ resource: Resource, than list: ShiftedList) -> Bool {
        guard let name = list.name, let saved = files(of: list.session).savedTime(of: name),
            let facts = store.peek(resource.key).flatMap({ ObjectFacts.of($0) })
        else { return false }
        return facts.received.wall > saved
    }

    /// Names the lists in memory by the key rules in force, if these have changed, and joins the
    /// windows of lists that are the same by now.
    func renameLists() {
        let version = names.keys.version
        let same = lists.withLock { lists -> [(list: ShiftedList, older: ShiftedList)] in
            guard lists.keyVersion != version else { return [] }
            lists.keyVersion = version
            // Of several, players continue with the one that they used last.
            let all = lists.all.map { (list: $0, rank: $0.rank) }
                .sorted { $0.rank > $1.rank }
            lists.removeAll()
            var same: [(list: ShiftedList, older: ShiftedList)] = []
            for (list, _) in all {
                let name = name(of: list.url, in: list.session)
                if let other = lists[name] {
                    list.rename(nil)
                    same.append((other, list))
                } else {
                    list.rename(name)
                    lists[name] = list
                }
            }
            return same
        }
        // Outside of the lock, for which server loops wait.
        for (list, older) in same { list.prepend(older) }
    }
}

extension ShiftedList {
    /// Its place among lists with the same name: those with segments first, then by the last request.
    fileprivate var rank: (Int, Monotonic) {
        state.withLock { state in
            (state.shift.segments.isEmpty ? 0 : 1, state.lastAsked ?? Monotonic(nanoseconds: 0))
        }
    }

    fileprivate func rename(_ name: WindowName?) {
        state.withLock { state in
            guard state.name != name else { return }
            state.name = name
            state.isUnsaved = true
        }
    }

    /// Adds the segments of an older window of the same list.
    fileprivate func prepend(_ older: ShiftedList) {
        let added = older.state.withLock { $0 }
        // A merge in a copy would undo a change that is made meanwhile.
        merging.withLock { _ in state.withLock { $0.prepend(added) } }
    }
}

extension ShiftedList.State {
    fileprivate mutating func prepend(_ older: Self) {
        guard let end = shift.segments.first?.number, shift.prepend(older.shift),
            let start = shift.segments.first?.number
        else { return }
        missing.formUnion(older.missing.filter { $0 < end })
        open.formUnion(older.open.filter { $0 < end })
        let unknown = max(start, older.lookedTo)
        if unknown < end { open.formUnion(unknown..<end) }
        change()
    }
}
