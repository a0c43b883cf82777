package import Posix
import Synchronization

/// Appends a body to an object through one fill; owned by the loop of the transfer.
package struct FillWriter {
    package let object: StoredObject
    package let fill: FillID
    /// The body offset of the next byte.
    package private(set) var offset: Int64
    private var backgroundWrite: BackgroundWrite?
    private var writer: BodyWriter?

    /// Begins a fill of `object` at `start`.
    package init(_ object: StoredObject, from start: Int64, to end: Int64?) {
        self.object = object
        offset = start
        fill = object.beginFill(from: start, to: end)
    }

    /// Returns the number of bytes up to the next cut of the file; at least one.
    package func bytesToCut(every piece: Int) -> Int {
        piece - Int((object.bodyOffset + offset) % Int64(piece))
    }

    /// The end of the bytes that readers can see: behind `offset` while bytes are queued.
    package var written: Int64 { backgroundWrite?.state.withLock { $0.written } ?? offset }

    /// Writes the next bytes, after all queued ones, and lets readers see them.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try drain()
        guard !bytes.isEmpty else { return }
        try object.append(bytes, at: offset, by: fill)
        offset += Int64(bytes.count)
    }

    /// Queues the next bytes for the writer's thread, which lets readers see them.
    ///
    /// - Parameters:
    ///   - bytes: taken if the queue has room, otherwise unchanged.
    ///   - writer: the same one for all of a fill.
    ///   - whenFailed: called once, on that thread, if they cannot be written; `drain` throws
    ///     the error.
    /// - Returns: false if the queue is full or `bytes` is empty.
    package mutating func backgroundWrite(
        _ bytes: inout [UInt8], to writer: BodyWriter,
        whenFailed: @autoclosure () -> @Sendable () -> Void
    ) -> Bool {
        let behind = backgroundWrite ?? BackgroundWrite(from: offset, whenFailed: whenFailed())
        let count = Int64(bytes.count)
        guard count > 0, writer.queue.add(&bytes, of: self, behind) else { return false }
        backgroundWrite = behind
        self.writer = writer
        offset += count
        return true
    }

    /// Returns once all queued bytes are in the file; blocks for the time of a few pieces.
    ///
    /// - Throws: the first write error; the bytes queued after it were dropped.
    package mutating func drain() throws(SystemError) {
        guard let behind = backgroundWrite else { return }
        writer?.queue.drain(behind)
        if let failure = behind.state.withLock({ $0.failure }) { throw failure }
        // Later writes do not go through this queue state.
        backgroundWrite = nil
    }

    /// Ends the fill, after writing everything queued.
    package func end(failure: (any Error)?) {
        if let backgroundWrite { writer?.queue.drain(backgroundWrite) }
        object.endFill(fill, failure: failure ?? backgroundWrite?.state.withLock { $0.failure })
    }
}
