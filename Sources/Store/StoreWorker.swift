/// The store thread: commits headers, writes the index in batches, evicts, reconciles.
import Logging
import Posix
import Retention
import Reactor
import Synchronization

/// Owned by the store thread's loop.
final class StoreWorker {
    let core: StoreCore
    /// Objects whose header on disk is behind, with the time of their last commit.
    private var dirty: [(object: StoredObject, since: Monotonic)] = []
    private var rows: [ObjectKey: RowChange] = [:]
    private var uses: [ObjectKey: Use] = [:]
    private var hasTouches = false
    /// True when objects were let go that the table may close now.
    private var mayTrim = false
    private var timer: TimerID?
    private var indexIsFailing = false

    init(core: StoreCore) {
        self.core = core
    }

    /// Looks at what other threads left.
    func mailArrived(_ loop: EventLoop) {
        let mail = core.channel.takeMail()
        for object in mail.dirty { dirty.append((object, loop.now)) }
        settleAll(mail.finished)
        for object in mail.discarded { removeDiscarded(object) }
        rows.merge(mail.rows) { $1 }
        hasTouches = hasTouches || mail.hasTouches
        commitDue(at: loop.now)
        if let wanted = mail.wantedBytes {
            flushIndex()
            evict(wanted: wanted)
        }
        scheduleTick(loop)
    }

    private func scheduleTick(_ loop: EventLoop) {
        guard timer == nil, !dirty.isEmpty || !rows.isEmpty || hasTouches || mayTrim else { return }
        timer = loop.schedule(after: core.configuration.indexInterval) { [unowned self] loop in
            timer = nil
            commitDue(at: loop.now)
            flushIndex()
            if mayTrim { core.table.trimAll() }
            mayTrim = false
            // What was in use at the last attempt may be idle now.
            if core.ledger.isOverBudget { evict(wanted: 0) }
            scheduleTick(loop)
        }
    }

    // MARK: Commits

    /// Commits what has grown enough or waited long enough.
    private func commitDue(at now: Monotonic) {
        let configuration = core.configuration
        var kept: [(object: StoredObject, since: Monotonic)] = []
        for (object, since) in dirty {
            let decision = object.state.withLock { state -> Bool? in
                guard state.place == .current, !state.isDiscarded else {
                    // Published later, it is noted again.
                    state.isQueued = false
                    return nil
                }
                guard state.uncommittedBytes > 0 || state.hasNewFacts else {
                    state.isQueued = false
                    return nil
                }
                return state.isComplete || state.uncommittedBytes >= configuration.commitBytes
                    || now - since >= configuration.commitInterval
            }
            switch decision {
            case nil: continue
            case false: kept.append((object, since))
            case true:
                settle(object)
                // A growing object stays on the list while it grows.
                let isBehind = object.state.withLock { state in
                    state.isQueued = state.uncommittedBytes > 0 || state.hasNewFacts
                    return state.isQueued
                }
                if isBehind { kept.append((object, now)) }
            }
        }
        mayTrim = mayTrim || kept.count < dirty.count
        dirty = kept
    }

    /// Commits many objects: their data is on its way to the disk before the first is waited for.
    private func settleAll(_ objects: [StoredObject]) {
        if objects.count > 1 {
            for object in objects { startWriteback(object.descriptor.number) }
        }
        for object in objects { settle(object) }
    }

    /// Commits an object, without the reservation if no fill works on it.
    private func settle(_ object: StoredObject) {
        dropReservation(of: object)
        commit(object)
    }

    /// Writes the header of a current object, after the data that it claims.
    func commit(_ object: StoredObject) {
        let (header, newBytes) = object.snapshot()
        guard let header else { return }
        do throws(SystemError) {
            if newBytes > 0 { try syncData(object.descriptor.number) }
            guard let bytes = header.encoded() else {
                core.log.debug(
                    "a head outgrew its header page", metadata: ["object": "\(object.key)"])
                return
            }
            try write(bytes, to: object.descriptor.number, at: 0)
            core.counters.commits.add(1, ordering: .relaxed)
        } catch {
            core.counters.commitFailures.add(1, ordering: .relaxed)
            core.log.error(
                "cannot commit a stored object",
                metadata: ["object": "\(object.key)", "error": "\(error)"])
            core.channel.noteStorageFailure(error)
            // After a failed sync the kernel may have dropped the pages: nothing of it is certain.
            object.discard()
            return
        }
        core.table.withShard(of: object.key) { _ in
            guard object.isCurrent else { return }
            core.channel.noteRow(.put(object.row(lastUsed: nil)), of: object.key)
        }
    }

    /// Gives back reserved blocks that the ended fills did not use.
    private func dropReservation(of object: StoredObject) {
        object.state.withLock { state in
            guard state.isPreallocated, state.fills.isEmpty, let total = state.total else { return }
            // Under the lock, so that no fill begins to write into a hole that is being punched.
            if !state.isComplete {
                keepOnly(
                    state.spans, of: object.descriptor.number, bodyOffset: object.bodyOffset,
                    total: total)
            }
            state.isPreallocated = false
            let left = Footprint.bytes(header: object.bodyOffset, present: state.spans.totalBytes)
            core.ledger.release(state.charge - left)
            state.charge = left
            // The index counts the reservation still.
            state.hasNewFacts = true
        }
    }

    private func removeDiscarded(_ object: StoredObject) {
        let removed = core.table.withShard(of: object.key) { shard -> StoredObject? in
            guard object.state.withLock({ $0.place == .current }) else { return nil }
            return core.unlink(object.key, &shard)
        }
        _ = consume removed
    }

    // MARK: Index

    /// Takes the recency that lookups left in the shards.
    private func gatherUses() {
        guard hasTouches else { return }
        hasTouches = false
        core.table.withEachShard { shard in
            uses.merge(shard.uses, uniquingKeysWith: Use.merge)
            shard.uses.removeAll(keepingCapacity: true)
        }
    }

    /// Writes what was gathered; what cannot be written is kept for the next time.
    func flushIndex() {
        let mail = core.channel.takeIndexMail()
        rows.merge(mail.rows) { $1 }
        hasTouches = hasTouches || mail.hasTouches
        gatherUses()
        guard !rows.isEmpty || !uses.isEmpty else { return }
        do {
            try core.index.apply(rows: rows, uses: uses)
            rows.removeAll(keepingCapacity: true)
            uses.removeAll(keepingCapacity: true)
            indexIsFailing = false
        } catch {
            core.counters.indexFailures.add(1, ordering: .relaxed)
            if !indexIsFailing {
                core.log.error("cannot write the index", metadata: ["error": "\(error)"])
            }
            indexIsFailing = true
        }
    }

    /// The row that a key will have once everything is written; nil if it will have none.
    ///
    /// The key's shard is locked.
    func latest(_ row: IndexRow) -> IndexRow? {
        switch core.channel.pendingRow(of: row.key) ?? rows[row.key] {
        case .put(let newer): newer
        case .delete: nil
        case nil: row
        }
    }

    /// Commits and writes everything there is now, or as much as the deadline allows.
    func finishAll(by deadline: Monotonic) {
        let mail = core.channel.takeMail()
        rows.merge(mail.rows) { $1 }
        hasTouches = hasTouches || mail.hasTouches
        for object in mail.discarded { removeDiscarded(object) }
        let behind = mail.finished + mail.dirty + dirty.map(\.object)
        for object in behind { startWriteback(object.descriptor.number) }
        for object in behind {
            object.state.withLock { $0.isQueued = false }
            if .now() < deadline { settle(object) }
        }
        dirty = []
        flushIndex()
    }
}

extension StoredObject {
    /// What a header written now may say once the data is synced, and how many body bytes are new
    /// in it; nil unless the object is current and has something to say.
    fileprivate func snapshot() -> (header: ObjectHeader?, newBytes: Int64) {
        state.withLock { state in
            guard state.place == .current, !state.isDiscarded,
                state.uncommittedBytes > 0 || state.hasNewFacts
            else { return (nil, 0) }
            let description = ObjectDescription(
                key: key, url: url, role: role, head: state.head, total: state.total,
                created: created, isStorable: true, title: title, kind: kind, isRead: isRead)
            let header = ObjectHeader(
                pages: UInt32(bodyOffset / ObjectHeader.pageSize), generation: generation,
                description: description, spans: state.spans)
            let newBytes = state.uncommittedBytes
            state.uncommittedBytes = 0
            state.hasNewFacts = false
            return (header, newBytes)
        }
    }
}
