import HLS
import Library
import Logging
import Model
import Playlists
import Posix
import Reactor
import Store
import Synchronization
import URISyntax

/// The end of a recording: writes its playlists in their finished form.
///
/// Hours of recording must not be lost for want of room or of an answer at their end: it waits and
/// tries again for as long as that takes. It ends once everything is on the disk, since the
/// windows, from which another run could write the playlists, are removed after that. Confined to
/// the keeper's loop.
final class RecordingEnding {
    private enum State {
        case ready
        /// The entry is being read.
        case reading
        case waiting(until: Monotonic)
        /// Everything is written, and is being synced.
        case syncing
        case over
    }

    private let playlists: RecordingPlaylists
    /// The entry as this run has read it; nil if only an earlier run has.
    private var entry: FetchedPlaylist?
    private let services: TimeShiftServices
    private let loop: EventLoop
    private var state = State.ready
    private var attempts = EndingAttempts()
    /// The entry as it was last written; nil before, and for a recording without one.
    private var writtenEntry: (bytes: [UInt8], generation: UInt64)?
    /// How often a sync was followed by further writing.
    private var rewrites = 0
    /// The reason why it waits; nil without one.
    private(set) var obstacle: String?
    /// The most rewrites after a sync; the recording then ends without another one, since a player
    /// may have the stream's own list stored repeatedly.
    private static let mostRewrites = 3
    /// Called before each attempt to write.
    var willStore: (() -> Void)?
    /// Called once, with what was written; empty if nothing was recorded.
    var didEnd: (([RecordingPlaylists.Finished]) -> Void)?

    init(
        _ playlists: RecordingPlaylists, entry: FetchedPlaylist?, _ services: TimeShiftServices,
        _ loop: EventLoop
    ) {
        self.playlists = playlists
        self.entry = entry
        self.services = services
        self.loop = loop
    }

    /// Writes nothing more.
    func cancel() { state = .over }

    /// Tries to write what is left of the playlists, unless that is under way, or failed just now;
    /// blocks on the disk.
    func attempt() {
        switch state {
        case .ready: break
        case .waiting(let time) where loop.now >= time: break
        case .waiting, .reading, .syncing, .over: return
        }
        if attempts.areToBeMade(losses: services.store.losses, now: loop.now) { makeLists() }
        write()
    }

    private func makeLists() {
        let losses = services.store.losses
        attempts.note(made: playlists.finished(), losses: losses, at: loop.now)
    }

    /// Writes what is left of the playlists.
    private func write() {
        let lists = attempts.lists
        guard !lists.isEmpty else { return end(with: []) }
        willStore?()
        let left = attempts.unwritten { url in
            services.storedGeneration(ofPlaylist: url, of: playlists.session)
        }
        do throws(SystemError) {
            for list in left {
                let generation = try store(list.bytes, at: list.url, base: list.url)
                attempts.note(written: list, as: generation)
                // It is the window in other numbers: a player that reads it meanwhile adds nothing.
                services.timeShift.list(list.url, of: playlists.session).state.withLock {
                    $0.generation = generation
                }
            }
        } catch {
            return wait("the playlists cannot be written: \(error)", for: EndingAttempts.pause)
        }
        guard playlists.order.isMultivariant else { return awaitDisk() }
        if let entry { return write(entry, naming: lists) }
        read(naming: lists)
    }

    /// Stores a playlist; what it replaces is no loss after which the lists are made again.
    private func store(
        _ bytes: [UInt8], at url: AbsoluteURL, base: AbsoluteURL
    ) throws(SystemError) -> UInt64 {
        let former = services.storedGeneration(ofPlaylist: url, of: playlists.session)
        let generation = try services.store(
            playlist: bytes, at: url, base: base, of: playlists.session)
        if former != nil { attempts.noteReplacement() }
        return generation
    }

    private func read(naming lists: [RecordingPlaylists.Finished]) {
        state = .reading
        attempts.noteWait()
        let wanted = FetchedPlaylist.Request(
            url: playlists.order.choice.url, session: playlists.session)
        let bound = LoopBound(self, to: loop)
        services.playlists.read(wanted) { result in
            bound.enqueue { ending, _ in
                guard case .reading = ending.state else { return }
                switch result {
                case .success(let entry):
                    ending.entry = entry
                    ending.write(entry, naming: lists)
                case .failure(let failure):
                    ending.wait(failure.message, for: ending.attempts.pauseOfReading())
                }
            }
        }
    }

    /// Writes the entry, reduced to the playlists with recorded segments, at least one.
    private func write(_ entry: FetchedPlaylist, naming lists: [RecordingPlaylists.Finished]) {
        let reduced = playlists.filtered(entry, to: Set(lists.map(\.url)))
        if reduced == nil {
            // The stored entry was removed, and that of the origin names other playlists by now.
            log("the entry of a recording names no playlist of it; the first one takes its place")
        }
        let bytes = reduced ?? lists[0].bytes
        guard writtenEntry?.bytes != bytes || !isEntryStored else { return awaitDisk() }
        do throws(SystemError) {
            let generation = try store(
                bytes, at: playlists.order.choice.url,
                base: reduced == nil ? lists[0].url : entry.base)
            writtenEntry = (bytes, generation)
        } catch {
            return wait("the entry cannot be written: \(error)", for: EndingAttempts.pause)
        }
        awaitDisk()
    }

    /// True if the stored entry, if the recording has one, is the one that was written.
    private var isEntryStored: Bool {
        guard let writtenEntry else { return !playlists.order.isMultivariant }
        let stored = services.storedGeneration(
            ofPlaylist: playlists.order.choice.url, of: playlists.session)
        return stored == writtenEntry.generation
    }

    /// Has everything synced: what was written, what it names, and the windows, from which another
    /// run begins if this one is killed before.
    private func awaitDisk() {
        guard rewrites <= Self.mostRewrites else { return end(with: attempts.lists) }
        attempts.noteWait()
        state = .syncing
        let windows = playlists.order.lists.map {
            services.timeShift.list($0.url, of: playlists.session)
        }
        services.timeShiftThread.onKeeper { [id = playlists.order.id] keeper in
            // Not those of one that was forgotten meanwhile.
            guard keeper.recorder.running[id] != nil else { return }
            for window in windows { keeper.save(window) }
        }
        let bound = LoopBound(self, to: loop)
        services.store.makeCertain { isCertain in
            bound.enqueue { ending, _ in ending.noteSynced(isCertain) }
        }
    }

    /// Ends; before that, makes the playlists again if something was lost meanwhile, and writes
    /// those that have changed or were replaced.
    private func noteSynced(_ isCertain: Bool) {
        guard case .syncing = state else { return }
        guard isCertain else {
            return wait(
                "the disk does not take what was written; check it, or make room",
                for: EndingAttempts.pause)
        }
        let named = attempts.lists.map(\.url)
        if attempts.areOutdated(losses: services.store.losses) { makeLists() }
        let left = attempts.unwritten { url in
            services.storedGeneration(ofPlaylist: url, of: playlists.session)
        }
        if left.isEmpty, attempts.lists.map(\.url) == named, isEntryStored {
            return end(with: attempts.lists)
        }
        rewrites += 1
        write()
    }

    private func wait(_ reason: String, for pause: Interval) {
        if obstacle != reason { log("the end of a recording waits", reason) }
        obstacle = reason
        attempts.noteWait()
        state = .waiting(until: loop.now + pause)
    }

    private func end(with lists: [RecordingPlaylists.Finished]) {
        state = .over
        obstacle = nil
        didEnd?(lists)
    }

    private func log(_ message: Logger.Message, _ reason: String = "") {
        services.log.warning(
            message, metadata: ["id": "\(playlists.order.id)", "reason": "\(reason)"])
    }
}
