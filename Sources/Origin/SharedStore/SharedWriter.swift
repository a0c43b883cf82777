// Writing complete objects to the second level, behind the players: a thread reads them from the
// disk and computes their checksums, the upstream loop sends them, one at a time.
import BucketClient
import CachePolicy
import DequeModule
import HLS
import HTTP
import Logging
import Model
import Numbers
import Posix
import Reactor
import SharedStore
import Store
import Synchronization
import URISyntax

/// The handle of the writer; any thread may use it.
final class SharedWriter: Sendable {
    /// Runs work on the loop of the second level.
    typealias OnLevel = @Sendable (_ work: @escaping @Sendable (SharedLevel) -> Void) -> Void

    private let thread: LoopThread?
    private let work: LateLoopBound<SharedWriting>?
    let stopping = Stopping()

    /// Whether the thread is told to end: reading a film takes minutes, which a stop does not have.
    final class Stopping: Sendable {
        private let flag = Atomic<Bool>(false)

        var isTold: Bool { flag.load(ordering: .acquiring) }

        /// Tells it; false if it was told before.
        func tell() -> Bool { !flag.exchange(true, ordering: .acquiringAndReleasing) }
    }

    /// Starts the thread; without one, nothing is written.
    init(
        store: ObjectStore, counters: Counters, report: SharedStoreReport, log: Logger,
        limits: PlaylistLimits, settings: SharedStoreSettings, onLevel: @escaping OnLevel
    ) {
        thread = try? LoopThread(name: "shared-store") { _ in }
        guard let thread else {
            work = nil
            log.error("nothing is written to the shared store: there is no thread for it")
            return
        }
        let work = LateLoopBound<SharedWriting>(thread.handle)
        self.work = work
        work.make { [stopping] loop in
            SharedWriting(
                store: store, counters: counters, report: report, log: log, limits: limits,
                settings: settings, onLevel: onLevel, stopping: stopping, loop: loop)
        }
    }

    private func enqueue(_ body: @escaping @Sendable (SharedWriting) -> Void) {
        work?.enqueue { work, _ in body(work) }
    }

    /// Queues an object; drops it if too many wait.
    func offer(_ candidate: SharedCandidate) { enqueue { $0.add(candidate) } }

    /// Goes on after the store was left out.
    func wake() { enqueue { $0.goOn() } }

    /// Reads the credentials again.
    func findKeys() { enqueue { $0.refreshKeys() } }

    /// Ends the thread, and has what was not written remembered, the object that is being read too;
    /// blocks for the disk.
    func stop() {
        guard stopping.tell() else { return }
        enqueue { $0.remember() }
        thread?.stopAndJoin()
        work?.end()
    }
}

/// The writer's work; lives on its loop.
final class SharedWriting {
    private let store: ObjectStore
    private let counters: Counters
    private let report: SharedStoreReport
    private let log: Logger
    private let limits: PlaylistLimits
    private let settings: SharedStoreSettings
    private let onLevel: SharedWriter.OnLevel
    private let stopping: SharedWriter.Stopping
    private let loop: EventLoop
    private let backlog: SharedBacklog
    private var current: SharedUpload?
    /// The objects written in this run.
    private var written = 0
    /// True for some time after a failure.
    private var isResting = false
    private var pause = SharedWriting.firstPause

    private static let firstPause = Interval.seconds(1 as Int64)
    private static let longestPause = Interval.seconds(60 as Int64)
    /// An upload is one request up to this size, and parts of this size above it.
    private static let partSize = 8 << 20
    /// The most attempts of one object, without those that failed because of the store.
    private static let mostAttempts = 3

    init(
        store: ObjectStore, counters: Counters, report: SharedStoreReport, log: Logger,
        limits: PlaylistLimits, settings: SharedStoreSettings,
        onLevel: @escaping SharedWriter.OnLevel, stopping: SharedWriter.Stopping, loop: EventLoop
    ) {
        self.store = store
        self.counters = counters
        self.report = report
        self.log = log
        self.limits = limits
        self.settings = settings
        self.onLevel = onLevel
        self.stopping = stopping
        self.loop = loop
        backlog = SharedBacklog(settings.backlogFile, loop: loop, log: log)
        backlog.didGrow = { [weak self] in self?.goOn() }
        // Once the daemon has started.
        if !backlog.isEmpty {
            loop.schedule(after: Self.firstPause) { [weak self] _ in self?.goOn() }
        }
    }

    func refreshKeys() {
        guard let keys = settings.findKeys() else { return }
        onLevel { level in level.take(keys) }
    }

    // MARK: The queue

    func add(_ candidate: SharedCandidate) {
        if !backlog.add(candidate) { counters.add(.sharedDropped) }
    }

    /// Writes what waits to the file; blocks on the disk.
    func remember() { backlog.rewrite() }

    func goOn() {
        defer { report.note(waiting: backlog.count) }
        while current == nil, !isResting, !stopping.isTold, report.isUp,
            let candidate = backlog.next()
        {
            guard let upload = prepare(candidate) else {
                // The stop may have cut its reading short: the next run writes it.
                if stopping.isTold { return }
                backlog.end()
                continue
            }
            current = upload
            step(upload)
        }
    }

    // MARK: Objects

    /// Reads an object's facts and computes its checksums; blocks on the disk.
    ///
    /// - Returns: nil for one that is gone, has changed or may not be shared, or if the daemon
    ///   stops.
    private func prepare(_ candidate: SharedCandidate) -> SharedUpload? {
        guard let object = store.peek(candidate.key), object.generation == candidate.generation,
            object.isComplete, let total = object.total,
            var head = ObjectFacts.of(object)?.head
        else { return nil }
        var facts = SharingRule.Facts()
        facts.followsHTTP = head.followsHTTP
        facts.fields = head.fields
        facts.isPlain200 = head.status == .ok
        facts.setsCookies = candidate.setsCookies
        facts.isKey = candidate.isKey
        facts.sharesKeys = settings.sharesKeys
        if head.isPlaylist {
            guard total <= Int64(limits.byteCount),
                let text = try? readBody(of: object, count: Int(total)),
                let list = try? Playlist(text, base: nil, PlaylistReading(limits: limits))
            else { return nil }
            // Whether a multivariant playlist is that of a film was known to the run that fetched
            // it.
            let isFilm = candidate.isFilm || list.multivariant == nil
            guard let isLive = candidate.isLive?() ?? (isFilm ? false : nil) else { return nil }
            facts.playlistIsLive = list.summary.isLive || isLive || head.wasLive
        }
        if let refusal = SharingRule.refusal(facts) {
            log.debug(
                "not written to the shared store",
                metadata: ["url": "\(candidate.url.redacted)", "reason": "\(refusal.rawValue)"])
            return nil
        }
        head.fields.remove(.cacheStatus)
        head.finalURL = Self.sharedURL(head, of: candidate.url)
        guard let sums = sums(of: object, total),
            let header = SharedHeader(
                key: candidate.key.bytes, total: total, role: candidate.role, written: .now(),
                head: head.encoded, sums: sums)
        else { return nil }
        return SharedUpload(
            candidate: candidate, object: object, start: header.encoded,
            length: header.objectLength)
    }

    /// The final URL as other nodes get it: without query, which may hold a viewer's token, and
    /// only where relative references need it.
    private static func sharedURL(_ head: StoredHead, of url: AbsoluteURL) -> String {
        guard head.isPlaylist, let final = try? AbsoluteURL(head.finalURL) else {
            return Flight.ownURL
        }
        func withoutQuery(_ url: AbsoluteURL) -> String {
            String(url.withoutUserinfo.text.prefix { $0 != "?" })
        }
        let text = withoutQuery(final)
        return text == withoutQuery(url) ? Flight.ownURL : text
    }

    /// The checksums of all stretches; nil if a byte cannot be read, or the daemon stops.
    private func sums(of object: StoredObject, _ total: Int64) -> [UInt32]? {
        guard let shift = SharedHeader.shift(for: total) else { return nil }
        var sums: [UInt32] = []
        var offset: Int64 = 0
        while offset < total {
            let count = Int(min(1 << Int64(shift), total - offset))
            guard !stopping.isTold, case .present = object.state(at: offset),
                let bytes = try? object.readBody(from: offset, count: count), bytes.count == count
            else { return nil }
            sums.append(crc32c(bytes))
            offset += Int64(count)
        }
        return sums
    }

    // MARK: Sending

    /// Sends the next piece of an upload; drops it if it cannot be read, after which `goOn` is due.
    private func step(_ upload: SharedUpload) {
        let name = SharedNames.object(upload.candidate.key.hex)
        if upload.length <= Int64(Self.partSize) {
            guard let bytes = upload.bytes(from: 0, count: Int(upload.length)) else {
                return drop(upload)
            }
            return send(bytes) { bucket, hash, done in
                _ = bucket.put(name, bytes, hash: hash, done: done)
            }
        }
        guard let number = upload.number else { return beginParts(upload, name) }
        let offset = Int64(upload.tags.count) * Int64(Self.partSize)
        guard offset < upload.length else { return complete(upload, name, number) }
        let count = Int(min(Int64(Self.partSize), upload.length - offset))
        guard let bytes = upload.bytes(from: offset, count: count) else { return drop(upload) }
        let part = upload.tags.count + 1
        send(bytes) { bucket, hash, done in
            bucket.putPart(name, of: number, number: part, bytes, hash: hash, done: done)
        }
    }

    private typealias Operation =
        @Sendable (BucketClient, _ hash: String, @escaping BucketClient.Reply<BucketReply>) -> Void

    private func send(_ bytes: [UInt8], _ operation: @escaping Operation) {
        let hash = Self.hex(SHA256Digest.of(bytes))
        let bound = LoopBound(self, to: loop)
        onLevel { level in
            operation(level.bucket, hash) { result in
                bound.enqueue { writing, _ in writing.sent(result) }
            }
        }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0, radix: 16, width: 2) }.joined()
    }

    private func sent(_ result: Result<BucketReply, BucketFailure>) {
        guard let upload = current else { return }
        guard case .success(let reply) = result, upload.number != nil else {
            return end(upload, result.map { _ in })
        }
        guard let tag = reply.tag else { return end(upload, .failure(.malformed)) }
        upload.tags.append(tag)
        step(upload)
        goOn()
    }

    private func beginParts(_ upload: SharedUpload, _ name: String) {
        let bound = LoopBound(self, to: loop)
        onLevel { level in
            level.bucket.beginUpload(name) { result in
                bound.enqueue { writing, _ in
                    guard let upload = writing.current else { return }
                    switch result {
                    case .success(let number):
                        upload.number = number
                        writing.step(upload)
                        writing.goOn()
                    case .failure(let failure): writing.end(upload, .failure(failure))
                    }
                }
            }
        }
    }

    private func complete(_ upload: SharedUpload, _ name: String, _ number: String) {
        let bound = LoopBound(self, to: loop)
        let tags = upload.tags
        onLevel { level in
            level.bucket.completeUpload(name, of: number, tags: tags) { result in
                bound.enqueue { writing, _ in
                    guard let upload = writing.current else { return }
                    writing.end(upload, result.map { _ in })
                }
            }
        }
    }

    /// Writes nothing for a while; reading goes on, which may be all that the credentials permit.
    private func rest() {
        isResting = true
        report.note(waiting: backlog.count)
        loop.schedule(after: pause) { [weak self] _ in
            self?.isResting = false
            self?.goOn()
        }
        pause = min(Self.longestPause, Interval(nanoseconds: pause.nanoseconds * 2))
    }

    /// Gives up an object that this node cannot read, for which the store is not to blame.
    private func drop(_ upload: SharedUpload) {
        current = nil
        removeParts(of: upload)
        backlog.end()
        counters.add(.sharedDropped)
        log.info(
            "an object is not written to the shared store, since this node cannot read it",
            metadata: ["url": "\(upload.candidate.url.redacted)"])
    }

    /// Removes the parts that were sent.
    private func removeParts(of upload: SharedUpload) {
        guard let number = upload.number else { return }
        let name = SharedNames.object(upload.candidate.key.hex)
        onLevel { level in level.bucket.abortUpload(name, of: number) }
    }

    private func end(_ upload: SharedUpload, _ result: Result<Void, BucketFailure>) {
        current = nil
        switch result {
        case .success:
            backlog.end()
            written += 1
            counters.add(.sharedWrites)
            counters.add(.sharedBytesWritten, upload.length)
            report.note(.writes, nil, log: log)
            onLevel { level in level.wrote() }
        case .failure(let failure):
            counters.add(.sharedWriteFailures)
            removeParts(of: upload)
            var candidate = upload.candidate
            let isAttempt = candidate.failed(failure, written: written)
            if candidate.attempts < Self.mostAttempts {
                backlog.postpone(candidate)
                log.log(
                    level: isAttempt ? .debug : .info, "a write to the shared store failed",
                    metadata: ["reason": "\(failure)"])
            } else {
                backlog.end()
                counters.add(.sharedDropped)
                log.warning(
                    "an object is not written to the shared store, which refuses it",
                    metadata: [
                        "url": "\(candidate.url.redacted)", "reason": "\(failure)",
                    ])
            }
            // A store that refuses this object and has taken others is not in trouble.
            if !isAttempt || !failure.isOfStore { report.note(.writes, failure, log: log) }
            return rest()
        }
        pause = Self.firstPause
        goOn()
    }
}
