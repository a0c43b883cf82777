import Glibc
import Logging
import Posix
import Reactor
import Synchronization

/// Making the files of new objects, and the room for them.
extension StoreCore {
    /// How long a new object or a growing one waits for eviction, in steps of half a millisecond.
    private static let patience = 40

    // MARK: Room

    /// Counts bytes for an object before they are written.
    ///
    /// Eviction works ahead, so there is room as a rule; else this waits for it, 20 ms at most.
    ///
    /// - Returns: false where there is no room in the budget or on the disk; nothing is counted then.
    func obtain(_ bytes: Int64) -> Bool {
        if take(bytes) {
            if usage.isOverBudget, !usage.isStuck { channel.askEviction(bytes: 0) }
            return true
        }
        let wasStuck = usage.isStuck
        channel.askEviction(bytes: bytes)
        guard bytes <= usage.budget, !wasStuck, channel.worker != nil else { return false }
        for _ in 0..<Self.patience {
            usleep(500)
            if take(bytes) { return true }
            if usage.isStuck { return false }
        }
        return false
    }

    /// Whether the file system has no more free than what must stay so.
    var isDiskFull: Bool {
        freeBytes(at: folder.path).map { $0 - (1 << 20) < configuration.minFreeBytes } ?? false
    }

    /// As `obtain`, without waiting.
    func take(_ bytes: Int64) -> Bool {
        hasRoomOnDisk(bytes) && usage.tryCharge(bytes)
    }

    /// What may be taken without asking the file system again.
    struct Allowance: Sendable {
        var bytes: Int64 = 0
        var end = Monotonic(nanoseconds: .min)

        /// For so long one answer of the file system serves.
        private static let lifetime = Interval.milliseconds(100)
        /// A disk that has less to spare is asked each time.
        private static let leastSpare: Int64 = 256 << 20

        /// After the file system said that there is so much beyond what must stay free.
        init(spare: Int64 = 0) {
            guard spare >= Self.leastSpare else { return }
            // Others write too.
            bytes = spare / 16
            end = .now() + Self.lifetime
        }

        mutating func take(_ wanted: Int64) -> Bool {
            guard wanted <= bytes, .now() < end else { return false }
            bytes -= wanted
            return true
        }
    }

    /// Whether there is room beyond what must stay free, as far as that can be asked.
    private func hasRoomOnDisk(_ bytes: Int64) -> Bool {
        if allowance.withLock({ $0.take(bytes) }) { return true }
        guard let free = freeBytes(at: folder.path) else { return true }
        let spare = free - bytes - configuration.minFreeBytes
        if spare >= 0 { allowance.withLock { $0 = Allowance(spare: spare) } }
        return spare >= 0
    }

    // MARK: Files

    /// Has the store thread watch for the folder when it is gone.
    func lookForFolder(after error: SystemError) {
        guard error.code == ENOENT, !folder.isInPlace else { return }
        folder.isLost = true
        channel.worker?.enqueue { worker, loop in worker.lookForFolder(loop) }
    }

    /// Makes an object with no bytes; without a name where it cannot or may not have one.
    func create(_ description: ObjectDescription) throws(SystemError) -> StoredObject {
        let generation = makeGeneration()
        var isDiskUsable = !channel.isStoringSuspended && !folder.isLost
        if description.isStorable, isDiskUsable,
            let pages = ObjectHeader.pages(
                url: description.url, head: description.head, total: description.total)
        {
            let header = ObjectHeader(
                pages: pages, generation: generation, description: description)
            do throws(SystemError) {
                if let body = description.body {
                    if let made = try createWhole(header, body) { return made }
                } else if let made = try createNamed(header, description) {
                    return made
                }
            } catch {
                // Longer than a file may be says nothing of the disk.
                isDiskUsable = error.code == EFBIG
                if !isDiskUsable { channel.noteStorageFailure(error) }
                lookForFolder(after: error)
                log.warning("cannot store an object", metadata: ["error": "\(error)"])
            }
        }
        let header = ObjectHeader(pages: 1, generation: generation, description: description)
        let folders = foldersWithoutNames(for: description.total, isDiskUsable: isDiskUsable)
        return try createUnnamed(header, in: folders)
    }

    /// Where files without names go, best first.
    private func foldersWithoutNames(for total: Int64?, isDiskUsable: Bool) -> [String] {
        var isDiskUsable = isDiskUsable
        if isDiskUsable, let free = freeBytes(at: folder.path) {
            // A body that is not kept takes what its readers lag behind; a disk that has hardly
            // more than that would break it off in the middle.
            let wanted = min(total ?? .max, configuration.unnamedRoom)
            isDiskUsable = free - wanted >= configuration.minFreeBytes
        }
        let own = folder.isLost ? [] : [folder.newFolder]
        let others = configuration.temporaryFolders
        return isDiskUsable ? own + others : others + own
    }

    /// Makes a further file for a body that is longer than one file may be.
    func openWithoutName(for generation: UInt64) throws(SystemError) -> OwnedDescriptor {
        var failure = SystemError("open", code: ENOENT)
        let isDiskUsable = !channel.isStoringSuspended && !folder.isLost
        for path in foldersWithoutNames(for: nil, isDiskUsable: isDiskUsable) {
            do throws(SystemError) {
                return try openNameless(in: path, generation)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// Nil where there is no room for it.
    private func createNamed(
        _ header: ObjectHeader, _ description: ObjectDescription
    ) throws(SystemError) -> StoredObject? {
        let total = description.expectsWholeBody ? header.total ?? 0 : 0
        guard total <= usage.budget else { return nil }
        let longest = (fileSizeLimit() ?? .max) - header.bodyOffset
        guard header.total ?? 0 <= longest else { return nil }
        let isCounted = total > 0 && total <= configuration.preallocationLimit
        let isReservable = isCounted && total > configuration.preallocationStart
        var charge = Footprint.bytes(header: header.bodyOffset, present: isCounted ? total : 0)
        guard obtain(charge) else { return nil }
        let path = folder.newPath(header.generation)
        var isReserved = false
        let file = try makeNewFile(path, charged: charge)
        do throws(SystemError) {
            guard let encoded = header.encoded() else { throw SystemError("pwrite", code: EFBIG) }
            try write(encoded.bytes, to: file.number, at: header.slotOffset)
            if isReservable {
                isReserved = try Posix.reserve(
                    file.number, offset: header.bodyOffset, length: total)
            }
        } catch {
            usage.release(charge)
            try? removeFile(path)
            throw error
        }
        if isReservable, !isReserved {
            let left = Footprint.bytes(header: header.bodyOffset, present: 0)
            usage.release(charge - left)
            charge = left
        }
        let parts = StoredObject.Parts(
            header: header, place: .unpublished, newPath: path, isPreallocated: isReserved,
            charge: charge)
        return StoredObject(parts, descriptor: SharedDescriptor(file), channel: channel)
    }

    /// Writes a short body together with the header that claims it, in one system call.
    ///
    /// After an unclean stop it is compared with its checksum like every other one, so that a header
    /// that is on the disk without its body claims nothing that is believed.
    ///
    /// Nil where there is no room for it.
    private func createWhole(
        _ header: ObjectHeader, _ body: [UInt8]
    ) throws(SystemError) -> StoredObject? {
        var header = header
        header.claim(body, epoch: folder.epoch)
        let charge = Footprint.bytes(header: header.bodyOffset, present: Int64(body.count))
        guard header.isComplete, charge <= usage.budget, obtain(charge) else { return nil }
        let path = folder.newPath(header.generation)
        let file = try makeNewFile(path, charged: charge)
        do throws(SystemError) {
            guard var bytes = header.encoded()?.bytes else {
                throw SystemError("pwrite", code: EFBIG)
            }
            bytes += repeatElement(0, count: Int(header.bodyOffset) - bytes.count)
            bytes += body
            try write(bytes, to: file.number, at: 0)
        } catch {
            usage.release(charge)
            try? removeFile(path)
            throw error
        }
        let parts = StoredObject.Parts(
            header: header, place: .unpublished, newPath: path, charge: charge, content: body,
            isClaimedEarly: true)
        return StoredObject(parts, descriptor: SharedDescriptor(file), channel: channel)
    }

    /// Makes a file in the folder of new ones, and that folder if somebody deleted it.
    ///
    /// What was `charged` for it is given back on failure.
    func makeNewFile(
        _ path: String, charged: Int64
    ) throws(SystemError) -> OwnedDescriptor {
        do throws(SystemError) {
            if let file = try openIfFolder(path) { return file }
            try makeFolder(folder.newFolder)
            return try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
        } catch {
            usage.release(charged)
            throw error
        }
    }

    /// Nil where only the folder of new files is missing.
    private func openIfFolder(_ path: String) throws(SystemError) -> OwnedDescriptor? {
        do throws(SystemError) {
            return try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
        } catch {
            guard error.code == ENOENT, folder.isInPlace else { throw error }
            return nil
        }
    }

    private func createUnnamed(
        _ header: ObjectHeader, in folders: [String]
    ) throws(SystemError) -> StoredObject {
        var failure = SystemError("open", code: ENOENT)
        for path in folders {
            do throws(SystemError) {
                let parts = StoredObject.Parts(
                    header: header, place: .unnamed, charge: 0,
                    countsForBudget: path == folder.newFolder)
                let file = try openNameless(in: path, header.generation)
                return StoredObject(parts, descriptor: SharedDescriptor(file), channel: channel)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private func openNameless(
        in folder: String, _ generation: UInt64
    ) throws(SystemError) -> OwnedDescriptor {
        do throws(SystemError) {
            return try openUnnamedFile(in: folder)
        } catch {
            guard error.code == EOPNOTSUPP || error.code == EISDIR || error.code == EINVAL else {
                throw error
            }
            // A file system without O_TMPFILE: the name lives for two system calls.
            let path = "\(folder)/sluice-\(String(generation, radix: 16))"
            let file = try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
            try removeFile(path)
            return file
        }
    }
}

extension ObjectHeader {
    /// Says that the whole body is there; vouched for by the run of this `epoch`.
    fileprivate mutating func claim(_ body: [UInt8], epoch: UInt64) {
        let range = 0..<Int64(body.count)
        spans.insert(range)
        extents.insert(range, sums: body.withUnsafeBytes { checksums(of: $0, at: 0) })
        isComplete = spans.isComplete(total: total)
        self.epoch = epoch
    }
}
