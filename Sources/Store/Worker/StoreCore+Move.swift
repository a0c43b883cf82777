import Glibc
import Logging
import Posix
import Synchronization

/// Moves objects whose header is too small: a head that grew with a 304, more spans than fit, or a
/// long header of format 1.
///
/// The object is copied into a file with a larger header, which then replaces it like a new
/// generation; holders of the former one keep reading that. While a fill works on it, the header
/// claims as many spans as fit, never more than is present.
extension StoreCore {
    private static let step = 1 << 20

    /// Moves an object to a file with a larger header if needed and no fill is running.
    func moveIfCramped(_ object: StoredObject) {
        let (isDue, needed) = object.state.withLock { state -> (Bool, UInt32?) in
            let pages = ObjectHeader.pages(
                url: object.url, head: state.head, total: state.total,
                spans: state.spans.ranges.count * 2)
            return (state.isCramped && state.fills.isEmpty && state.isCurrent, pages)
        }
        guard isDue else { return }
        guard let needed else {
            log.notice(
                "dropped an object whose head is too long for a file",
                metadata: ["object": "\(object.key)"])
            _ = remove(object.key, only: object)
            return
        }
        let isRoomier = Int64(needed) * ObjectHeader.pageSize > object.bodyOffset
        do throws(SystemError) {
            // Without room, and at the page limit, spans that do not fit stay unclaimed, as after a
            // kill; without room, the next commit tries again.
            if isRoomier, try !move(object, pages: needed) { return }
            object.state.withLock { $0.isCramped = false }
        } catch {
            channel.noteStorageFailure(error)
            log.warning("cannot move an object", metadata: ["error": "\(error)"])
        }
    }

    /// Copies an object into a file with more pages for its header, and publishes the copy.
    ///
    /// - Returns: false if there is no room for a copy. Nothing is evicted for it: the objects that
    ///   would go are worth more than what the header cannot claim, and eviction would have to wait
    ///   for this thread, its own.
    private func move(_ object: StoredObject, pages: UInt32) throws(SystemError) -> Bool {
        object.sumUp()
        var header = object.state.withLock { object.header($0, epoch: folder.epoch) }
        header.pages = pages
        header.generation = makeGeneration()
        header.sequence = 0
        let charge = Footprint.bytes(of: header)
        guard take(charge) else { return false }
        let path = folder.newPath(header.generation)
        let file = try makeNewFile(path, charged: charge) { file throws(SystemError) in
            for span in header.spans.ranges {
                try copy(span, of: object, to: file, at: header.bodyOffset)
            }
            guard let encoded = header.encoded() else { throw SystemError("pwrite", code: EFBIG) }
            try write(encoded.bytes, to: file, at: 0)
            // The name replaces a file that may have been on the disk for days: a power cut must
            // leave one that is whole.
            try syncData(file)
        }
        let moved = StoredObject(
            header: header, place: .unpublished, newPath: path, descriptor: file, channel: channel,
            charge: charge)
        // If the object changed meanwhile, drop the copy; the next commit tries again.
        let isSame = object.state.withLock { state in
            state.spans == header.spans && state.head == header.head && state.fills.isEmpty
        }
        if isSame { try publish(moved, replacing: object) }
        if object.isDiscarded { _ = remove(object.key, only: moved) }
        return true
    }

    private func copy(
        _ span: Range<Int64>, of object: StoredObject, to file: CInt, at bodyOffset: Int64
    ) throws(SystemError) {
        var offset = span.lowerBound
        while offset < span.upperBound {
            let count = Int(min(Int64(Self.step), span.upperBound - offset))
            let bytes = try readBytes(
                from: object.descriptor.number, at: object.bodyOffset + offset, count: count)
            guard bytes.count == count else { throw SystemError("pread", code: EIO) }
            try write(bytes, to: file, at: bodyOffset + offset)
            offset += Int64(count)
        }
    }
}
