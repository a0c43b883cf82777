import Glibc
import Logging
import Numbers
import Posix
import Reactor
import Synchronization

/// Creation of new objects' files, and the disk space for them.
extension StoreCore {
    // MARK: Room

    /// Charges bytes to the disk usage before an object writes them.
    ///
    /// Eviction works ahead, so there is usually room; otherwise room is granted in advance, and
    /// evicted by the store thread: the callers are loops, which must not wait for that.
    ///
    /// - Parameters:
    ///   - bytes: how many.
    ///   - isNewFile: whether the object also needs a file of its own.
    ///   - own: what is charged for the object already.
    ///   - isPinned: true if the object will never be evicted; asked only if that matters.
    /// - Returns: false if there is no room in the budget or on the disk, and eviction would not
    ///   make it; nothing is charged then.
    func obtain(
        _ bytes: Int64, isNewFile: Bool = false, beside own: Int64 = 0,
        isPinned: @autoclosure () -> Bool = false
    ) -> Bool {
        let isOnDisk = hasRoomOnDisk(bytes, isNewFile: isNewFile)
        if isOnDisk, usage.tryCharge(bytes) {
            if usage.isOverBudget, !usage.isStuck { channel.askEviction(bytes: 0) }
            usage.noteGranted(bytes)
            return true
        }
        // Eviction is requested already, and may begin in minutes only.
        if usage.awaitsComparison { return false }
        let isGranted =
            channel.worker != nil
            && (isOnDisk || hasRoomOnDisk(bytes, isNewFile: isNewFile, inAdvance: true))
            && usage.tryChargeInAdvance(
                bytes, beside: own, isPinned: isPinned(), isDiskShort: !isOnDisk)
        // What is charged counts as used; the disk has it as free until it is written.
        channel.askEviction(bytes: isGranted && isOnDisk ? 0 : bytes)
        if isGranted { usage.noteGranted(bytes) } else { usage.noteRefused(bytes) }
        return isGranted
    }

    /// True if nothing can be evicted, or if the room that was last refused would be refused again;
    /// asks the file system in that case.
    var isOutOfRoom: Bool {
        if usage.isStuck { return true }
        guard let bytes = usage.refused else { return false }
        let isOnDisk = hasRoomOnDisk(bytes, isNewFile: true)
        if isOnDisk, usage.used.addingSaturated(bytes) <= usage.budget { return false }
        return !(isOnDisk || hasRoomOnDisk(bytes, isNewFile: true, inAdvance: true))
            || !usage.mayEvict(for: bytes, isDiskShort: !isOnDisk)
    }

    /// True if the file system's free space has reached the minimum that must stay free.
    var isDiskFull: Bool {
        freeBytes(at: folder.path).map { $0 - (1 << 20) < usage.minFree } ?? false
    }

    /// Charges bytes like `obtain`, but none in advance, and evicts nothing.
    func take(_ bytes: Int64) -> Bool {
        hasRoomOnDisk(bytes, isNewFile: false) && usage.tryCharge(bytes)
    }

    /// The bytes that may be charged without asking the file system again.
    struct Allowance: Sendable {
        var bytes: Int64 = 0
        var end = Monotonic(nanoseconds: .min)

        /// How long one answer of the file system is used.
        private static let lifetime = Interval.milliseconds(100)
        /// With less spare space than this, the file system is asked each time.
        private static let leastSpare: Int64 = 256 << 20

        /// Creates an allowance of nothing.
        init() {}

        /// Creates an allowance from the free bytes beyond the required minimum.
        init(spare: Int64, now: Monotonic) {
            guard spare >= Self.leastSpare else { return }
            // Only a part, since other programs write too.
            bytes = spare / 16
            end = now + Self.lifetime
        }

        mutating func take(_ wanted: Int64, now: Monotonic) -> Bool {
            guard wanted <= bytes, now < end else { return false }
            bytes -= wanted
            return true
        }
    }

    /// True if there is room beyond the required minimum, or if the file system cannot be asked.
    ///
    /// In advance of evictions, up to half of the minimum may be used.
    private func hasRoomOnDisk(
        _ bytes: Int64, isNewFile: Bool, inAdvance: Bool = false
    ) -> Bool {
        if allowance.withLock({ $0.take(bytes, now: .now()) }) { return true }
        guard let free = freeRoom(at: folder.path) else { return true }
        if inAdvance {
            let least = usage.minFree - min(usage.advance, usage.minFree / 2)
            return free.bytes - bytes >= least
                && !(isNewFile && FileFloor.isReached(free.files, inAdvance: true))
        }
        let spare = free.bytes - bytes - usage.minFree
        // An allowance counts bytes only.
        if spare >= 0, FileFloor.isFar(free.files) {
            allowance.withLock { $0 = Allowance(spare: spare, now: .now()) }
        }
        return spare >= 0 && !(isNewFile && FileFloor.isReached(free.files))
    }

    // MARK: Files

    /// Makes the store thread check for the cache folder after an error says that a file is
    /// missing.
    func lookForFolder(after error: SystemError) {
        guard error.code == ENOENT, !folder.isInPlace else { return }
        folder.isLost = true
        channel.worker?.enqueue { worker, loop in worker.lookForFolder(loop) }
    }

    /// Creates an object with no bytes; unnamed if it may not or cannot have a name.
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
                // A body longer than a file may be is not a fault of the disk.
                isDiskUsable = error.code == EFBIG
                if !isDiskUsable { channel.noteStorageFailure(error) }
                lookForFolder(after: error)
                log.warning("cannot store an object", metadata: ["error": "\(error)"])
            }
        }
        let header = ObjectHeader(pages: 1, generation: generation, description: description)
        let folders = foldersWithoutNames(for: description.total, isDiskUsable: isDiskUsable)
        let (file, path) = try openNameless(in: folders, generation)
        return StoredObject(
            header: header, place: .unnamed, descriptor: file, channel: channel, charge: 0,
            countsForBudget: path == folder.newFolder)
    }

    /// Returns the folders for unnamed files, best first.
    private func foldersWithoutNames(for total: Int64?, isDiskUsable: Bool) -> [String] {
        // An unnamed body occupies what its readers have not consumed yet; on a nearly full disk it
        // would fail halfway.
        let wanted = min(total ?? .max, configuration.unnamedRoom)
        let isLost = folder.isLost
        let own = UnnamedPlace(
            path: folder.newFolder, free: freeBytes(at: folder.path) ?? .max,
            reserve: usage.minFree, isFailing: !isDiskUsable || isLost)
        let others = configuration.temporaryFolders
        if own.hasRoom(for: wanted) { return [own.path] + others }
        let disk = isLost ? nil : FileIdentity(at: folder.path)
        let places = others.map { path in
            UnnamedPlace(
                path: path, free: freeBytes(at: path) ?? -1,
                isOnOwnDisk: FileIdentity(at: path)?.isOnDisk(of: disk) ?? false)
        }
        return UnnamedPlace.sorted(places + (isLost ? [] : [own]), for: wanted)
    }

    /// Opens a further unnamed file for a body that is longer than one file may be.
    func openWithoutName(for generation: UInt64) throws(SystemError) -> SharedDescriptor {
        let isDiskUsable = !channel.isStoringSuspended && !folder.isLost
        let folders = foldersWithoutNames(for: nil, isDiskUsable: isDiskUsable)
        return try openNameless(in: folders, generation).file
    }

    /// Opens an unnamed file in the first of some folders that takes one.
    private func openNameless(
        in folders: [String], _ generation: UInt64
    ) throws(SystemError) -> (file: SharedDescriptor, folder: String) {
        var failure = SystemError("open", code: ENOENT)
        for folder in folders {
            do throws(SystemError) {
                let file = try openNamelessFile(
                    in: folder, name: "sluice-\(String(generation, radix: 16))")
                return (SharedDescriptor(file), folder)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private func isPinned(_ header: ObjectHeader) -> Bool {
        pins.holds(header.key, ofTitle: header.title)
    }

    /// Blocks are preallocated for bodies up to this length: writes to preallocated files take
    /// about a quarter of the processor time of writes that extend a file.
    private static let preallocationLimit: Int64 = 64 << 20
    /// Shorter bodies are written in one call; preallocation would cost more than it saves.
    private static let preallocationStart: Int64 = 64 << 10

    /// Creates a named object; nil if there is no room for it.
    private func createNamed(
        _ header: ObjectHeader, _ description: ObjectDescription
    ) throws(SystemError) -> StoredObject? {
        let total = description.expectsWholeBody ? header.total ?? 0 : 0
        guard total <= usage.budget else { return nil }
        let longest = (fileSizeLimit() ?? .max) - header.bodyOffset
        guard header.total ?? 0 <= longest else { return nil }
        let isCounted = total > 0 && total <= Self.preallocationLimit
        let isReservable = isCounted && total > Self.preallocationStart
        var charge = Footprint.bytes(header: header.bodyOffset, present: isCounted ? total : 0)
        guard obtain(charge, isNewFile: true, isPinned: isPinned(header)) else { return nil }
        let path = folder.newPath(header.generation)
        var isReserved = false
        let file = try makeNewFile(path, charged: charge) { file throws(SystemError) in
            guard let encoded = header.encoded() else { throw SystemError("pwrite", code: EFBIG) }
            try write(encoded.bytes, to: file, at: header.slotOffset)
            if isReservable {
                isReserved = try Posix.reserve(file, offset: header.bodyOffset, length: total)
            }
        }
        if isReservable, !isReserved {
            let left = Footprint.bytes(header: header.bodyOffset, present: 0)
            usage.release(charge - left)
            charge = left
        }
        return StoredObject(
            header: header, place: .unpublished, newPath: path, descriptor: file, channel: channel,
            charge: charge, isPreallocated: isReserved)
    }

    /// Writes a short body together with the header that claims it, in one system call.
    ///
    /// After an unclean stop it is compared with its checksum like every other body, so a header
    /// that reached the disk without its body is not trusted.
    ///
    /// Returns nil if there is no room.
    private func createWhole(
        _ header: ObjectHeader, _ body: [UInt8]
    ) throws(SystemError) -> StoredObject? {
        var header = header
        header.claim(body, epoch: folder.epoch)
        let charge = Footprint.bytes(header: header.bodyOffset, present: Int64(body.count))
        guard header.isComplete, charge <= usage.budget,
            obtain(charge, isNewFile: true, isPinned: isPinned(header))
        else { return nil }
        let path = folder.newPath(header.generation)
        let file = try makeNewFile(path, charged: charge) { file throws(SystemError) in
            guard var bytes = header.encoded()?.bytes else {
                throw SystemError("pwrite", code: EFBIG)
            }
            bytes += repeatElement(0, count: Int(header.bodyOffset) - bytes.count)
            bytes += body
            try write(bytes, to: file, at: 0)
        }
        return StoredObject(
            header: header, place: .unpublished, newPath: path, descriptor: file, channel: channel,
            charge: charge, content: body, isClaimedEarly: true)
    }

    /// Creates a file in the folder of new files and has `fill` write it.
    ///
    /// On failure, removes the file and releases the bytes in `charged`.
    func makeNewFile(
        _ path: String, charged: Int64, _ fill: (CInt) throws(SystemError) -> Void
    ) throws(SystemError) -> SharedDescriptor {
        let file = try openNewFile(path, charged: charged)
        do throws(SystemError) {
            try fill(file.number)
        } catch {
            usage.release(charged)
            try? removeFile(path)
            throw error
        }
        return SharedDescriptor(file)
    }

    /// Creates a file in the folder of new files, and that folder if it was deleted.
    ///
    /// On failure, releases the bytes in `charged`.
    private func openNewFile(
        _ path: String, charged: Int64
    ) throws(SystemError) -> OwnedDescriptor {
        do throws(SystemError) {
            if let file = try openIfFolder(path) {
                usage.noteFileMade()
                return file
            }
            try makeFolder(folder.newFolder)
            return try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
        } catch {
            usage.release(charged)
            // A new file takes no bytes: what is short is files, of the disk or of a quota.
            if error.isLackOfRoom, !isDiskFull {
                usage.noteFileRefused(isQuota: error.code == EDQUOT)
            }
            throw error
        }
    }

    /// Creates a file; nil if only the folder of new files is missing.
    private func openIfFolder(_ path: String) throws(SystemError) -> OwnedDescriptor? {
        do throws(SystemError) {
            return try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
        } catch {
            guard error.code == ENOENT, folder.isInPlace else { throw error }
            return nil
        }
    }
}

extension ObjectHeader {
    /// Claims the whole body, written in this `epoch`.
    fileprivate mutating func claim(_ body: [UInt8], epoch: UInt64) {
        let range = 0..<Int64(body.count)
        spans.insert(range)
        extents.insert(range, sums: body.withUnsafeBytes { checksums(of: $0, at: 0) })
        isComplete = spans.isComplete(total: total)
        self.epoch = epoch
    }
}
