// What a recording needs of other titles, and pins.
import DurableState
import HLS
import Library
import Logging
import Model
import Routing
import Store
import URISyntax

extension Recording {
    /// Notes what an earlier run pinned, which stays pinned.
    func notePinned() {
        let title = session.id.number
        for known in services.store.pins() where known.title == title {
            sharedKeys.formUnion(known.keys)
        }
    }

    /// Notes everything in the lists that another title fetched, also before an end of the daemon
    /// that came before it was pinned; opens the files of all segments.
    func noteShared() {
        hasNotedShared = true
        for chosen in order.lists {
            let shift = services.timeShift.list(chosen.url, of: session).shift
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
                    let key = services.timeShift.storedKey(url, session, role: role, mark: mark)
                    guard !sharedKeys.contains(key), let object = services.store.peek(key),
                        object.title != session.id.number
                    else { continue }
                    sharedKeys.insert(key)
                }
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
