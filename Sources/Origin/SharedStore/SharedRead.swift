// Reading one object of the second level: its header, then the stretches that hold the wanted
// bytes, each compared with its checksum before any of it is passed on.
import BucketClient
import CachePolicy
import HTTP
import Model
import Posix
import Reactor
import SharedStore
import Store
import Upstream

/// One read for a flight, which receives what it has proved; lives on the upstream loop.
final class SharedRead {
    enum End {
        /// All wanted bytes were proved.
        case complete
        /// There is no such object, or none that can be used.
        case missing
        case failed(String)
    }

    private enum Stage {
        case header
        case body
        case ended
    }

    private let level: SharedLevel
    private weak var flight: Flight?
    private let key: ObjectKey
    private let start: Int64
    private let end: Int64?
    private let lane: Lane
    private let timeouts: TransferTimeouts
    private let trace: TransferTrace
    private var stage = Stage.header
    private var header: SharedHeader?
    private var tag: String?
    private var transfer: Transfer?
    /// The range of the object that the current request asks for; nil for all of it.
    private var asked: ClosedRange<Int64>?
    private var hasHead = false
    /// Of the header, or of the current stretch.
    private var buffer: [UInt8] = []
    /// The stretch that is being received.
    private var stretch = 0
    /// The number after the last wanted stretch.
    private var lastStretch = 0
    private var hasBegun = false
    private var failure: End?
    /// All bytes received, headers included.
    private(set) var received: Int64 = 0
    private(set) var isPaused = false
    /// Nil until bytes were proved, and after a pause until more arrive.
    private var pace: ReadPace?

    /// Bytes that are requested where only a header is wanted: longer than those of segments.
    private static let headerGuess: Int64 = 16 << 10

    /// - Parameters:
    ///   - key: the cache key's digest.
    ///   - start: the first wanted byte.
    ///   - end: the end of the wanted bytes; nil for the end of the body.
    ///   - lane: the lane.
    ///   - level: the second level.
    ///   - flight: receives what is proved, and records the costs.
    init(
        _ key: ObjectKey, from start: Int64, to end: Int64?, lane: Lane, level: SharedLevel,
        for flight: Flight
    ) {
        self.level = level
        self.key = key
        self.start = start
        self.end = end
        self.lane = lane
        self.flight = flight
        trace = flight.trace
        timeouts = TransferTimeouts(
            connect: .seconds(1 as Int64), firstByte: .seconds(3 as Int64),
            stall: .seconds(3 as Int64))
    }

    /// Sends the first request.
    func begin() {
        if start == 0, end == nil {
            ask(nil)
        } else if let known = level.headers[key] {
            header = known.header
            tag = known.tag
            askBody()
        } else {
            ask(0...Self.headerGuess - 1)
        }
    }

    private func ask(_ range: ClosedRange<Int64>?) {
        asked = range
        hasHead = false
        buffer.removeAll(keepingCapacity: true)
        transfer = level.bucket.get(
            SharedNames.object(key.hex), bytes: range, lane: lane, timeouts: timeouts,
            trace: trace, delegate: self)
        if isPaused { transfer?.pause() }
    }

    private func askBody() {
        guard let header else { return }
        guard start < header.total else { return finish(.missing) }
        let last = min(end ?? header.total, header.total)
        guard start < last else { return finish(.missing) }
        let range = header.aligned(start..<last)
        stage = .body
        stretch = header.stretch(at: range.lowerBound)
        lastStretch = header.stretch(at: range.upperBound - 1) + 1
        ask((header.bodyOffset + range.lowerBound)...(header.bodyOffset + range.upperBound - 1))
    }

    // MARK: Control

    /// Ends the read; nothing more is reported.
    func cancel() {
        flight = nil
        stage = .ended
        let running = transfer
        transfer = nil
        running?.cancel()
    }

    func pause() {
        isPaused = true
        transfer?.pause()
    }

    func resume() {
        isPaused = false
        pace = nil
        transfer?.resume()
    }

    /// Measures whether so few bytes have arrived lately that a player who waits is better served
    /// by the origin; to be called when some have.
    ///
    /// - Returns: true once for each time that is measured and was too slow.
    func checkIsTooSlow(now: Monotonic) -> Bool {
        guard hasBegun, !isPaused, var measured = pace else {
            pace = ReadPace(received: received, now: now)
            return false
        }
        let isSlow = measured.checkIsTooSlow(received: received, now: now)
        pace = measured
        return isSlow
    }

    /// Reports the end, outside of libcurl.
    private func finish(_ end: End) {
        guard stage != .ended else { return }
        stage = .ended
        let running = transfer
        transfer = nil
        running?.cancel()
        flight?.sharedRead(self, didEnd: end)
    }

    /// Ends the transfer with a failure that is reported when libcurl has returned.
    private func fail(_ end: End) {
        guard failure == nil else { return }
        failure = end
        transfer?.cancel()
    }

    private func damaged(_ what: String) {
        level.counters.add(.sharedDamage)
        level.headers[key] = nil
        fail(.failed(what))
    }

    // MARK: Bytes

    private func takeHeader(_ bytes: UnsafeRawBufferPointer) {
        buffer += bytes
        switch SharedHeader.preamble(buffer) {
        case .incomplete: return
        case .foreign: return damaged("an object has another form")
        case .length(let length):
            guard buffer.count >= length else { return }
            guard let header = SharedHeader(buffer), header.key == key.bytes else {
                return damaged("a header does not match its checksum or name")
            }
            self.header = header
            level.headers[key] = SharedLevel.KnownHeader(header: header, tag: tag)
            // The rest of a guess is dropped, and asked for with the stretches.
            guard asked == nil else { return }
            if let length = told, length != header.objectLength {
                return damaged("an object has another length than its header says")
            }
            stage = .body
            stretch = 0
            lastStretch = header.sums.count
            let rest = Array(buffer[length...])
            buffer.removeAll(keepingCapacity: true)
            buffer.reserveCapacity(1 << Int(header.shift))
            if header.total == 0 { report() }
            rest.withUnsafeBytes { takeBody($0) }
        }
    }

    /// The length of the answer, if it states one.
    private var told: Int64?

    private func takeBody(_ bytes: UnsafeRawBufferPointer) {
        guard let header else { return }
        var rest = bytes
        while !rest.isEmpty, stretch < lastStretch, failure == nil, stage == .body {
            let range = header.range(ofStretch: stretch)
            let count = min(rest.count, range.count - buffer.count)
            buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            guard buffer.count == range.count else { return }
            guard crc32c(buffer) == header.sums[stretch] else {
                return damaged("bytes do not match their checksum")
            }
            stretch += 1
            report()
            pass(range)
            buffer.removeAll(keepingCapacity: true)
        }
        // What follows the last stretch need not end.
        if !rest.isEmpty, failure == nil, isComplete { fail(.complete) }
    }

    private func report() {
        guard !hasBegun, failure == nil, let header else { return }
        hasBegun = true
        if flight?.sharedRead(self, didBegin: header) == false { fail(.missing) }
    }

    /// Passes on what is wanted of a stretch.
    private func pass(_ range: Range<Int64>) {
        let wanted = range.clamped(to: start..<max(start, end ?? .max))
        guard !wanted.isEmpty, failure == nil else { return }
        level.counters.add(.sharedBytesRead, Int64(wanted.count))
        buffer.withUnsafeBytes { raw in
            let first = Int(wanted.lowerBound - range.lowerBound)
            flight?.sharedRead(
                self,
                didProve: UnsafeRawBufferPointer(rebasing: raw[first..<first + wanted.count]))
        }
    }

    private var isComplete: Bool {
        guard stage == .body, let header else { return false }
        return hasBegun && (header.total == 0 || stretch >= lastStretch)
    }
}

extension SharedRead: TransferDelegate {
    func transfer(_ transfer: Transfer, didReceive head: TransferHead) {
        guard transfer === self.transfer, failure == nil else { return }
        if let failure = BucketFailure(head.status) {
            let isMissing = if case .missing = failure { true } else { false }
            // The header belongs to a former version, which was longer.
            let isShorter = head.status == .rangeNotSatisfiable && header != nil
            guard isMissing || isShorter else { return fail(.failed(failure.description)) }
            level.headers[key] = nil
            return fail(.missing)
        }
        hasHead = true
        told = asked == nil ? head.contentLength : nil
        if let known = tag, let given = head.fields.first(.etag), known != given {
            level.headers[key] = nil
            return fail(.missing)
        }
        tag = head.fields.first(.etag)
        guard let asked else {
            if head.status != .ok { fail(.failed("a whole object was asked for, not a part")) }
            return
        }
        guard head.status == .partialContent,
            case .satisfied(let first, let last, let total)? = ContentRange.parse(head.fields),
            first == asked.lowerBound, last <= asked.upperBound,
            stage == .header || last == asked.upperBound
        else { return damaged("another range came than was asked for") }
        if let total, let header, total != header.objectLength {
            damaged("an object has another length than its header says")
        }
    }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) {
        guard transfer === self.transfer, failure == nil, hasHead else { return }
        received += Int64(bytes.count)
        switch stage {
        case .header where header == nil: takeHeader(bytes)
        case .body: takeBody(bytes)
        case .header, .ended: break
        }
    }

    func transferRoundDidEnd(_ transfer: Transfer) {
        guard transfer === self.transfer, hasBegun, failure == nil else { return }
        flight?.sharedReadRoundDidEnd(self)
    }

    func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
        guard transfer === self.transfer, stage != .ended else { return }
        self.transfer = nil
        if let failure { return finish(failure) }
        if isComplete { return finish(.complete) }
        if case .failure(let error) = result { return finish(.failed(error.message)) }
        guard stage == .header else {
            level.counters.add(.sharedDamage)
            return finish(.failed("an object ended early"))
        }
        if header != nil { return askBody() }
        // A header longer than the guess.
        if case .length(let length) = SharedHeader.preamble(buffer), let asked,
            Int64(length) > asked.upperBound + 1, Int64(buffer.count) == asked.upperBound + 1
        {
            return ask(0...Int64(length) - 1)
        }
        level.counters.add(.sharedDamage)
        finish(.failed("an object ended in its header"))
    }
}
