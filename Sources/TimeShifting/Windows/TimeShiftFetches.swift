// Fetches the segments of a growing playlist into the store, with their keys and initialization
// sections.
import CachePolicy
import HLS
import HTTP
import Library
import Model
import Numbers
import Origin
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// The fetches for one list.
///
/// Confined to the keeper's loop.
final class TimeShiftFetches {
    /// A resource, or a byte range of one.
    package struct Piece: Hashable {
        package let url: AbsoluteURL
        package let role: ResourceRole
        let range: SubRange?
        /// Tells apart the resources that the URL of a key or section has named over time.
        let mark: UInt32
        /// The number of the first segment that needs it.
        package let number: Int
    }

    private let services: TimeShiftServices
    private let loop: EventLoop
    private let list: ShiftedList
    private let session: Session
    private let forwardedFields: Fields
    private let yields: Bool
    /// Called with nil when a piece is stored, or with the failure of an attempt; failed attempts
    /// are retried for a while.
    var didEnd: ((Piece, ProxyFailure?) -> Void)?
    /// True while only pages of other sites have a use for the fetches.
    var isForPage = false {
        didSet {
            // What pages may not have was given up: the next call of `want` requests it again.
            if oldValue, !isForPage { next = nil }
        }
    }
    /// The bytes fetched so far.
    private(set) var fetchedBytes: Int64 = 0
    /// Numbers of the stored segments; those that have left the longer window are forgotten.
    package private(set) var stored: Set<Int> = []

    private var queue = FetchQueue<Piece>()
    /// The fetches in flight, with the epochs under which they store.
    private var running: [Piece: (fetch: BackgroundFetch, epoch: Epoch)] = [:]
    /// Keys and initialization sections that have already been requested.
    private var structure = RequestedStructure()
    /// The first segment that was not requested yet; nil before the first call of `want`.
    private var next: Int?
    /// Numbers of segments that were gaps when they would have been requested, for as long as they
    /// are in the origin's window.
    private var gaps: Set<Int> = []
    private var window = FetchWindow()
    /// The URLs that segments have in the origin's window in place of those they were first listed
    /// under, by number.
    private var renewedURLs: [Int: AbsoluteURL] = [:]
    /// When the origin's window was read; nil if it was not in this run.
    private var readAt: Monotonic?
    private var isStopped = false

    /// The most pieces of one list that are fetched in parallel.
    private static let mostRunning = 4

    init(
        _ services: TimeShiftServices, _ loop: EventLoop, of list: ShiftedList,
        for resource: Resource, yields: Bool
    ) {
        self.services = services
        self.loop = loop
        self.list = list
        session = resource.session
        forwardedFields = resource.forwardedFields
        self.yields = yields
    }

    /// True if every requested piece is stored, has failed or has lapsed.
    var isIdle: Bool { queue.isIdle && running.isEmpty }

    /// Requests every segment of the origin's window that was not requested before, or not for a
    /// player.
    ///
    /// The first call also requests segments that have just left the window: players' reloads may
    /// have moved it before, and origins keep segments for a while.
    ///
    /// - Parameters:
    ///   - shift: the longer window.
    ///   - readAt: when the origin's window in it was read; nil if it was not in this run.
    func want(_ shift: TimeShift, readAt: Monotonic?) {
        guard let first = shift.segments.first?.number, let last = shift.segments.last?.number
        else { return }
        self.readAt = readAt
        renewedURLs = shift.renewedURLs
        window = FetchWindow(of: shift)
        let wanted =
            next.map { max($0, shift.windowStart) } ?? shift.windowStart - ShiftedList.grace
        let former = gaps.filter { $0 >= shift.windowStart }.sorted()
        gaps = []
        // An origin's numbers may leap by 2^53: only those that exist are walked.
        let start = max(wanted, first)
        let added = start..<max(start, last.addingSaturated(1))
        for number in former + added {
            guard let segment = shift.segment(number: number) else { continue }
            want(segment)
        }
        guard !added.isEmpty || gaps.count < former.count else { return }
        // The pieces of the first reading keep their order: no fetch can have been too slow yet.
        if next != nil { queue.sort { [window] piece in window.standing(of: piece) } }
        next = last + 1
        structure.trim(to: shift)
        if stored.count > 2 * shift.segments.count + 64 { stored = stored.filter { $0 >= first } }
        pump()
        giveWay()
    }

    /// Tries pieces again that lapsed in an outage, or were put off until a reading; called while
    /// the origin answers.
    ///
    /// - Parameters:
    ///   - start: the start of the origin's window. Segments before it are dropped, but no keys and
    ///     no initialization sections, which other segments need.
    ///   - all: true to try all, for the last time.
    func tryLapsed(from start: Int, all: Bool = false) {
        queue.tryLapsed(most: all ? .max : Self.mostRunning) { [window] piece in
            guard piece.role == .segment else { return true }
            return piece.number >= start - ShiftedList.grace
                && !window.mayBeReused(piece, after: .zero)
        }
        pump()
    }

    /// True if the origin may have given the name of a piece to a later segment by now.
    private func mayBeReused(_ piece: Piece) -> Bool {
        window.mayBeReused(piece, after: readAt.map { loop.now - $0 } ?? .zero)
    }

    private func want(_ segment: TimeShiftSegment) {
        let number = segment.number
        guard let url = segment.url else { return }
        guard !segment.isGap else {
            gaps.insert(number)
            return
        }
        for part in structure.add(needsOf: segment) {
            queue.add(
                Piece(
                    url: part.url, role: part.role, range: part.range, mark: part.mark,
                    number: number))
        }
        guard !stored.contains(number) else { return }
        queue.add(
            Piece(
                url: url, role: .segment, range: segment.byteRange, mark: segment.marks.segment,
                number: number))
    }

    private func pump() {
        while !isStopped, running.count < Self.mostRunning, let piece = queue.next() {
            guard running[piece] == nil else { continue }
            // It would bring the bytes of the later segment. The next reading tells.
            guard !mayBeReused(piece) else {
                queue.putOff(piece)
                continue
            }
            guard let resource = resource(of: piece) else {
                leave(piece)
                continue
            }
            var wanted = BackgroundFetch.Request(
                resource: resource, range: piece.range?.bytes, lane: .prefetch, yields: yields,
                keepsEmpty: true, isForPage: isForPage)
            // What a recording loses is lost for good.
            wanted.goesFirst = !yields
            wanted.fillsWindow = true
            // Later, when the segment has left the origin, nothing would prove the stored one.
            wanted.revalidatesDoubtful = piece.role == .segment && piece.range == nil
            let bound = LoopBound(self, to: loop)
            let fetch = services.flights.bring(wanted) { end in
                bound.enqueue { fetches, _ in fetches.receive(end, of: piece) }
            }
            running[piece] = (fetch, resource.epoch)
        }
    }

    /// Returns the resource of a piece in the epoch that its place is marked with.
    ///
    /// - Returns: nil if it is not stored and its name has another meaning by now. A name that this
    ///   run has not seen may still have the meaning of an earlier one.
    private func resource(of piece: Piece) -> Resource? {
        let named = services.names.resource(
            url(of: piece), session, role: piece.role, forwarding: forwardedFields)
        let mark = list.mark(of: piece)
        if named.epoch == mark { return named }
        let marked = named.changing { $0.cacheKey.epoch = mark }
        let isStored = services.store.peek(marked.key)?.isComplete ?? false
        return isStored || named.epoch < mark ? marked : nil
    }

    /// Leaves a piece whose name has another meaning by now: what it brings is not what its place
    /// lists.
    ///
    /// While the origin lists the place, the next reading may tell that it still has this name.
    private func leave(_ piece: Piece) {
        guard piece.number < window.start else { return queue.putOff(piece) }
        queue.cancelled(piece)
        forget(piece)
    }

    /// Forgets that a piece was requested: a later segment that needs it may ask for it again.
    private func forget(_ piece: Piece) {
        structure.remove(
            StructurePiece(url: piece.url, role: piece.role, range: piece.range, mark: piece.mark))
    }

    /// Returns the URL to request a piece under: the one in the origin's window, whose token may be
    /// newer than that of a window from an earlier run, if it leads to the same object.
    private func url(of piece: Piece) -> AbsoluteURL {
        guard piece.role == .segment, let renewed = renewedURLs[piece.number] else {
            return piece.url
        }
        let keys = [piece.url, renewed].map {
            services.names.keys.cacheKey(of: $0, session: session, role: piece.role)
        }
        return keys[0] == keys[1] ? renewed : piece.url
    }

    /// Cancels segments that still wait for players or for a slot: late ones, if pieces in time are
    /// queued, which would otherwise be requested after the origin has removed them, and those
    /// whose names may be given again, or were.
    private func giveWay() {
        let leaving = running.filter { piece, known in
            mayBeReused(piece) || known.epoch != resource(of: piece)?.epoch
                || queue.hasPieceInTime && window.standing(of: piece) != .inTime
        }
        BackgroundFetch.cancelWaiting(leaving.values.map(\.fetch))
    }

    private func receive(_ end: BackgroundFetch.End, of piece: Piece) {
        let epoch = running.removeValue(forKey: piece)?.epoch
        guard !isStopped else { return }
        switch end {
        case .stored where isMisplaced(piece, storedIn: epoch):
            queue.putBack(piece, as: window.standing(of: piece))
        case .stored(let report):
            queue.stored(piece)
            count(piece, report)
            didEnd?(piece, nil)
        case .failed(let failure, _): retry(piece, after: failure)
        // It gave way to others.
        case .cancelled: queue.putBack(piece, as: window.standing(of: piece))
        }
        pump()
    }

    /// True if the place of a piece was marked anew after its request was sent, and before the
    /// response came: what is stored now is not found there.
    private func isMisplaced(_ piece: Piece, storedIn epoch: Epoch?) -> Bool {
        guard let epoch, let present = resource(of: piece)?.epoch else { return false }
        return present != epoch
    }

    private func count(_ piece: Piece, _ report: BackgroundFetch.Report) {
        services.counters.add(.shiftFetched)
        let bytes = Self.bytes(of: piece, report)
        fetchedBytes = fetchedBytes.addingSaturated(bytes)
        if piece.role == .segment { stored.insert(piece.number) }
    }

    /// Returns the bytes of a stored piece; of its range, those that the resource has.
    private static func bytes(of piece: Piece, _ report: BackgroundFetch.Report) -> Int64 {
        guard let range = piece.range?.bytes else { return report.total ?? report.broughtBytes }
        let end = min(range.upperBound, report.total ?? range.upperBound)
        return max(0, end - range.lowerBound)
    }

    private func retry(_ piece: Piece, after failure: ProxyFailure) {
        // A fetch that began for a page may fail after a player has joined.
        let mayPass =
            failure.isHiddenFromPages
            ? !isForPage : failure.isWorthRetrying && !failure.isLost
        let isFinal = failure.forbidsStoring || window.isGone(piece, after: failure)
        switch queue.failed(piece, mayPass: mayPass, isFinal: isFinal) {
        case .again(let delay):
            loop.schedule(after: delay) { [weak self] _ in
                guard let self else { return }
                queue.retry(piece)
                pump()
            }
        case .lapsed: break
        case .givenUp: forget(piece)
        }
        didEnd?(piece, failure)
    }

    /// Cancels all fetches.
    package func stop() {
        isStopped = true
        BackgroundFetch.cancel(running.values.map(\.fetch))
        running = [:]
        queue.removeAll()
    }
}
