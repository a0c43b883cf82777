import BucketClient
import DequeModule
import HLS
import Logging
import Model
import Posix
import Reactor
import SharedStore
import Store
import URISyntax

/// A complete object that the second level may get.
struct SharedCandidate: Sendable {
    let key: ObjectKey
    let generation: UInt64
    /// The URL that was asked for.
    let url: AbsoluteURL
    let role: UInt8
    let isKey: Bool
    let setsCookies: Bool
    /// True once a multivariant playlist counts as a film's: within the delay, none of its
    /// playlists was seen to be live.
    var isFilm: Bool
    /// Returns true once one of its playlists was seen to be live; nil for a candidate of an
    /// earlier run, which has decided that.
    var isLive: (@Sendable () -> Bool)?
    /// The attempts that failed, without those that failed because of the store.
    private(set) var attempts = 0
    /// The number of objects that this run had written when the store first answered 403 for this
    /// one; nil until then.
    private(set) var refusedAfter: Int?

    /// Notes that a write has failed.
    ///
    /// A store that refuses the credentials answers 403 for all objects, one with a rule against
    /// some objects for these alone. Once another object was written after the first 403, the store
    /// refuses this one, unless the code of a later 403 tells that it is about the credentials.
    ///
    /// - Parameters:
    ///   - failure: why it failed.
    ///   - written: how many objects this run has written.
    /// - Returns: true if it counts as an attempt; false where the store failed.
    mutating func failed(_ failure: BucketFailure, written: Int) -> Bool {
        if failure.isOfStore {
            guard failure.mayBeRuleOfObject else { return false }
            let first = refusedAfter ?? written
            refusedAfter = first
            guard written > first else { return false }
        }
        attempts += 1
        return true
    }
}

/// What waits to be written to the second level, in memory and in a file; lives on the writer's
/// loop.
final class SharedBacklog {
    private var queue: Deque<SharedCandidate>
    /// Playlists that join the queue after a delay, in the order of their coming.
    private var delayed: Deque<SharedCandidate> = []
    private(set) var current: SharedCandidate?
    private let file: BacklogFile?
    /// True once what an earlier run has left is in the queue; the file is not written before.
    private var isTakenUp = false
    private let loop: EventLoop
    private let log: Logger
    /// True while the file is to be written anew.
    private var isScheduled = false
    private var isFailing = false
    /// Called when something joins the queue.
    var didGrow: (() -> Void)?

    /// Time until a file that lacks changes, or is no longer needed, is written anew.
    private static let delayOfFile = Interval.seconds(5 as Int64)
    /// Time for a player to open the playlists that a multivariant one names.
    private static let delayOfPlaylists = Interval.seconds(2 as Int64)

    /// Takes up what an earlier run has not written; blocks on the disk.
    init(_ path: String?, loop: EventLoop, log: Logger) {
        self.loop = loop
        self.log = log
        file = path.map { BacklogFile($0) }
        queue = []
        rewrite()
    }

    /// True if nothing can be written now.
    var isEmpty: Bool { queue.isEmpty }

    /// Those that wait in the queue, and the one that is being written.
    var count: Int { queue.count + (current == nil ? 0 : 1) }

    private var all: [SharedCandidate] { (current.map { [$0] } ?? []) + queue + delayed }

    // MARK: The queue

    /// Adds an object.
    ///
    /// - Returns: false if too many wait.
    func add(_ candidate: SharedCandidate) -> Bool {
        guard count + delayed.count < WriteBacklog.most else { return false }
        guard candidate.role == ResourceRole.playlist.letter else {
            join(candidate)
            return true
        }
        delayed.append(candidate)
        note(candidate, waits: true)
        loop.schedule(after: Self.delayOfPlaylists) { [weak self] _ in self?.delayEnded() }
        return true
    }

    private func delayEnded() {
        // All of them wait equally long.
        var candidate = delayed.removeFirst()
        guard candidate.isLive?() != true else { return note(candidate, waits: false) }
        candidate.isFilm = true
        join(candidate)
    }

    private func join(_ candidate: SharedCandidate) {
        queue.append(candidate)
        note(candidate, waits: true)
        didGrow?()
    }

    /// Returns the next one to be written, until `end` or `postpone`; nil without one.
    func next() -> SharedCandidate? {
        current = queue.popFirst()
        return current
    }

    func end() {
        guard let candidate = current else { return }
        current = nil
        note(candidate, waits: false)
    }

    /// Puts the current one at the end of the queue, so that it does not hold up the others.
    ///
    /// - Parameter candidate: the current one, which knows of its failure by now.
    func postpone(_ candidate: SharedCandidate) {
        current = nil
        queue.append(candidate)
    }

    // MARK: The file

    /// Notes a change in the file; to be called once it is made.
    private func note(_ candidate: SharedCandidate, waits: Bool) {
        // A file that lacks a change is written anew.
        guard let file, !isFailing else { return }
        do throws(SystemError) {
            try waits ? file.add(candidate) : file.remove(candidate)
            let waiting = count + delayed.count
            if file.isLong(for: waiting) { rewrite() } else if waiting == 0 { rewriteLater() }
        } catch {
            report(error)
            rewriteLater()
        }
    }

    private func rewriteLater() {
        guard !isScheduled else { return }
        isScheduled = true
        loop.schedule(after: Self.delayOfFile) { [weak self] _ in
            guard let self else { return }
            isScheduled = false
            let (lackedFormer, formerCount) = (!isTakenUp, count)
            if isFailing || count + delayed.count == 0 { rewrite() }
            if lackedFormer, count > formerCount { didGrow?() }
        }
    }

    /// Writes what waits to the file, which is removed if nothing does; blocks on the disk.
    ///
    /// What an earlier run has left is read first.
    func rewrite() {
        guard let file else { return }
        do throws(SystemError) {
            try takeUp(file)
            try file.write(all)
            isFailing = false
        } catch {
            report(error)
            rewriteLater()
        }
    }

    private func takeUp(_ file: BacklogFile) throws(SystemError) {
        guard !isTakenUp else { return }
        let former = try file.read()
        isTakenUp = true
        queue.prepend(contentsOf: former)
    }

    private func report(_ error: SystemError) {
        guard !isFailing else { return }
        isFailing = true
        log.info(
            "the list of objects for the shared store could not be saved; retrying every 5 seconds",
            metadata: ["error": "\(error)"])
    }
}
