// What a flight knows of a body that may have no end (decision 36).
import Endless
import HTTP
import Model
import Posix

/// Finds out whether a body is a live stream, and which bytes of its connections belong to it.
///
/// Used on the loop of origins; viewers share its `body`.
final class EndlessFill {
    let body: EndlessBody
    private var scanner: StreamScanner
    /// Nil once it is decided.
    private var trial: EndlessTrial?
    /// Drops the beginning of a new connection; nil while bytes are taken as they come.
    private var resumption: EdgeResumption?
    private var titles: StationTitles?
    /// Where decoding can begin in what was not written yet, apart from what the scanner holds.
    private var points: [Int64] = []
    private var disposedAt: Monotonic
    /// The end of the body at the last look at what can be freed.
    private var disposedEnd: Int64 = 0

    /// Pauses between two looks at what can be freed.
    static let disposalPause = Interval.milliseconds(200)
    /// The bytes after which there is a look without a pause: a CDN may deliver seconds at once, as
    /// after a stall.
    static let disposalStep: Int64 = 1 << 20

    /// Starts with the response that begins the body.
    init(_ body: EndlessBody, _ head: EndlessHead, _ fields: Fields, now: Monotonic) {
        self.body = body
        trial = EndlessTrial(head, now: now)
        titles = StationTitles(fields)
        scanner = StreamScanner(body.format)
        disposedAt = now
    }

    /// Goes on with the response of a new connection, at its first access point.
    func goOn(_ fields: Fields, now: Monotonic) {
        // Without program tables no access point is found.
        let lacksTables = body.format == .transport && scanner.tables.isEmpty
        resumption = EdgeResumption(body.format, awaitsPoint: !lacksTables, now: now)
        titles = StationTitles(fields)
    }

    /// Takes bytes of a connection, and hands out those to append to the body.
    ///
    /// - Parameters:
    ///   - bytes: the bytes.
    ///   - end: the end of the body.
    ///   - now: the time.
    ///   - append: called at most once.
    func take(
        _ bytes: UnsafeRawBufferPointer, end: Int64, now: Monotonic,
        append: (UnsafeRawBufferPointer) -> Void
    ) {
        guard titles != nil else { return scan(bytes, end, now, append) }
        let audio = titles?.strip(bytes.bindMemory(to: UInt8.self).span) ?? []
        audio.withUnsafeBytes { scan($0, end, now, append) }
    }

    private func scan(
        _ bytes: UnsafeRawBufferPointer, _ end: Int64, _ now: Monotonic,
        _ append: (UnsafeRawBufferPointer) -> Void
    ) {
        guard !bytes.isEmpty else { return }
        let span = bytes.bindMemory(to: UInt8.self).span
        guard resumption != nil else {
            scanner.take(span)
            return append(bytes)
        }
        guard
            let junction = resumption?.take(
                span, end: end, boundary: scanner.bytesToBoundary(from: end), now: now)
        else { return }
        resumption = nil
        scanner = junction.scanner
        if junction.isAccessPoint { points.append(junction.offset) }
        junction.bytes.withUnsafeBytes(append)
    }

    /// Notes that the body was written up to an offset: moves the window of its viewers.
    ///
    /// - Returns: what the body is, once, when that is decided; `undecided` before and after.
    func didWrite(to end: Int64, now: Monotonic) -> EndlessTrial.Verdict {
        let reached = points + scanner.takeAccessPoints()
        points = []
        body.advance(
            to: end, accessPoints: reached, tables: scanner.tables, packet: scanner.lastPacket,
            now: now)
        let verdict = trial?.observe(bytes: end, scanner, now: now) ?? .undecided
        switch verdict {
        case .undecided: return .undecided
        case .endless: body.settle(.endless)
        case .file: body.settle(.file)
        }
        trial = nil
        return verdict
    }

    /// Notes whether the transfer is paused for its readers, whose speed is not the origin's.
    func note(isPaused: Bool, now: Monotonic) {
        if isPaused { trial?.pause(now: now) } else { trial?.resume(now: now) }
    }

    /// Decides which bytes to free, a few times a second or after each step of bytes.
    ///
    /// - Parameters:
    ///   - end: the end of the body.
    ///   - slowest: the offset of the slowest reader.
    ///   - now: the time.
    /// - Returns: the end of the bytes to free; nil between two looks.
    func disposableEnd(
        of end: Int64, slowest: @autoclosure () -> Int64?, now: Monotonic
    ) -> Int64? {
        guard now - disposedAt >= Self.disposalPause || end - disposedEnd >= Self.disposalStep
        else { return nil }
        disposedAt = now
        disposedEnd = end
        return body.dispose(slowest: slowest(), now: now)
    }
}
