// The pins of a recording on objects that were fetched for other titles.
import DurableState
import HLS
package import Library
import Logging
import Model
import Posix
import Reactor
import Routing
import Store
import Synchronization
import URISyntax

extension Recording {
    /// Notes what an earlier run pinned, which stays pinned.
    func notePinned() {
        sharedKeys.formUnion(services.store.pin(of: session.id.number)?.keys ?? [])
    }

    /// Notes everything in the lists that was fetched for another title, including what the
    /// previous run did not pin before it ended; opens the files of all segments.
    func noteShared() {
        hasNotedShared = true
        for chosen in order.lists {
            let list = services.timeShift.list(chosen.url, of: session)
            if list.isUnread { hasNotedShared = false }
            services.timeShift.forEachKey(of: list.shift, session) { key in
                guard !sharedKeys.contains(key), let object = services.store.peek(key),
                    object.title != session.id.number
                else { return }
                sharedKeys.insert(key)
            }
        }
    }

    /// Pins everything that it needs of other titles, before one of them is removed; also while it
    /// is paused.
    ///
    /// Blocks on the disk.
    func pinShared() throws(StateFault) {
        if pinnedKeys == nil { notePinned() }
        if !hasNotedShared { noteShared() }
        if sharedKeys != pinnedKeys { try keepPin() }
    }

    func pin() {
        do throws(StateFault) {
            try keepPin()
        } catch {
            services.log.error("a recording cannot be pinned", metadata: ["error": "\(error)"])
        }
    }

    private func keepPin() throws(StateFault) {
        try services.store.pin(
            title: session.id.number, url: order.choice.url.normalisedForKey,
            keys: Array(sharedKeys))
        pinnedKeys = sharedKeys
    }
}

extension TimeShiftTable {
    /// Calls `body` with the key of everything that playing a window requires: of each segment, and
    /// once of the keys and the initialization section that several share.
    fileprivate func forEachKey(
        of shift: TimeShift, _ session: Session, _ body: (ObjectKey) -> Void
    ) {
        var structures: Set<TimeShiftSegment.Structure> = []
        for segment in shift.segments where !segment.isGap {
            let marks = segment.marks
            var needed: [(AbsoluteURL?, ResourceRole, UInt32)] = [
                (segment.url, .segment, marks.segment)
            ]
            if structures.insert(segment.structure).inserted {
                needed.append((segment.mapURL, .initialization, marks.map))
                needed += segment.keyURLs.map { ($0, .key, segment.mark(ofKey: $0)) }
            }
            for case (let url?, let role, let mark) in needed {
                body(storedKey(url, session, role: role, mark: mark))
            }
        }
    }
}

/// What paused recordings need of other titles: found and pinned once in a run, since they fetch
/// nothing more.
///
/// Finding it opens the files of all segments, which takes a while, and a purge waits for it.
struct PausedPins {
    private var saved: Set<String> = []
    /// Recordings, by ID, whose needs are noted but whose pins could not be saved yet.
    private(set) var noted: [String: Recording] = [:]

    func areSaved(for id: String) -> Bool { saved.contains(id) }

    mutating func note(saved id: String) {
        noted[id] = nil
        saved.insert(id)
    }

    mutating func note(_ recording: Recording) { noted[recording.order.id] = recording }

    /// Forgets a recording that is resumed or removed.
    mutating func forget(_ id: String) {
        noted[id] = nil
        saved.remove(id)
    }
}

extension RecordingTable {
    /// Returns the keys of what players' windows in memory have of the streams of a recording.
    ///
    /// The windows are those of the same playlists, whatever the queries of their URLs.
    func keysInWindows(of order: RecordingOrder) -> Set<ObjectKey> {
        func place(_ url: AbsoluteURL) -> String { "\(url.origin)\(url.path)" }
        let places = Set(order.lists.map { place($0.url) })
        var keys: Set<ObjectKey> = []
        for list in services.timeShift.all
        where list.session.shift.recording == nil && places.contains(place(list.url)) {
            services.timeShift.forEachKey(of: list.shift, list.session) { key in
                keys.insert(key)
            }
        }
        return keys
    }

    /// Has all recordings except one pin what they need of other titles; throws after all of them
    /// if one could not.
    ///
    /// Blocks on the disk.
    func pinShared(besides id: String? = nil) throws(StateFault) {
        var fault: StateFault?
        for recording in running.values where recording.order.id != id {
            do throws(StateFault) {
                try recording.pinShared()
            } catch {
                fault = fault ?? error
            }
        }
        for order in paused.values where order.id != id && !pausedPins.areSaved(for: order.id) {
            let recording = pausedPins.noted[order.id] ?? Recording(order, services, loop)
            do throws(StateFault) {
                try recording.pinShared()
                if recording.hasNotedShared { pausedPins.note(saved: order.id) }
            } catch {
                // A disk that fails otherwise may not have been readable either.
                if case .noRoom = error { pausedPins.note(recording) }
                fault = fault ?? error
            }
        }
        if let fault { throw fault }
    }

    /// Calls `pinShared` before a purge or a clear, and logs its failure; a purge is made in any
    /// case.
    ///
    /// - Returns: why something could not be pinned; nil if all is.
    fileprivate func pinBeforePurge() -> StateFault? {
        do throws(StateFault) {
            try pinShared()
            return nil
        } catch {
            services.log.error(
                "a recording cannot be pinned before a purge", metadata: ["error": "\(error)"])
            return error
        }
    }
}

extension TimeShiftThread {
    /// How long a purge waits: the files of a long recording may all have to be opened.
    private static let patience = Interval.seconds(10 as Int64)

    /// Has recordings pin what they need of titles that are about to be purged: they pin late.
    ///
    /// Blocks until they have, for `patience` at most; returns at once before the keeper is
    /// started. Must not be called on the keeper's thread.
    ///
    /// - Returns: `done`, the failure, or `underWay` if they need longer or cannot be waited for.
    package func willPurge() -> StoreAdministration.Pinning {
        guard isStarted.load(ordering: .acquiring) else { return .done }
        guard let isDone = try? ThreadSemaphore() else { return .underWay }
        let found = Mutex<StateFault?>(nil)
        onKeeper { keeper in
            let fault = keeper.recorder.pinBeforePurge()
            found.withLock { $0 = fault }
            isDone.signal()
        }
        guard isDone.wait(atMost: Self.patience) else { return .underWay }
        if let fault = found.withLock({ $0 }) { return .failed("\(fault)") }
        return .done
    }
}
