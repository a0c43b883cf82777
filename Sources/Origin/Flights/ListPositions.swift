// The positions of stored lists at the live edge: each is parsed once, long lists on another
// thread.
import CachePolicy
import HLS
import Model
import Posix
import Reactor
import Store

/// The positions of stored lists; lives on the upstream loop.
final class ListPositions {
    private let texts: TextWorker
    private let limits: PlaylistLimits
    private let loop: EventLoop
    /// By generation; nil for a list that cannot be parsed.
    private var known = RecentMap<UInt64, LivePosition?>(capacity: 1_024)
    /// Fetches that wait for a list to be parsed on another thread.
    private var waiting: [FetchID: TextWorker.Request] = [:]
    /// The fetches that are handled now, after their lists were parsed.
    private var readFirst: Set<FetchID> = []

    init(_ texts: TextWorker, limits: PlaylistLimits, loop: EventLoop) {
        self.texts = texts
        self.limits = limits
        self.loop = loop
    }

    /// Returns the position of a stored list; nil for one that cannot be parsed, and for a long one
    /// that another thread has not parsed yet.
    ///
    /// Blocks for the page cache only: a list is read just after it was received.
    func position(of list: StoredObject) -> LivePosition? {
        if let position = known[list.generation] { return position }
        guard list.total ?? 0 < TextWorker.longText, let made = reading(of: list)?.position
        else { return nil }
        known[list.generation] = made
        return made
    }

    /// Has a long list parsed on another thread, unless that was done.
    ///
    /// - Parameters:
    ///   - list: the list.
    ///   - then: called on this loop when `position(of:)` can answer.
    /// - Returns: the request, for withdrawing; nil if there is nothing to wait for.
    func read(_ list: StoredObject, then: @escaping () -> Void) -> TextWorker.Request? {
        let generation = list.generation
        guard let total = list.total, total >= TextWorker.longText, known[generation] == nil,
            let reading = reading(of: list)
        else { return nil }
        let bound = LoopBound((self, then), to: loop)
        let key = TextWorker.Key(generation: generation, product: .position)
        return texts.make(key, bytes: Int(total), { reading.position }) { position in
            bound.enqueue { pair, _ in
                pair.0.known[generation] = .some(position)
                pair.1()
            }
        }
    }

    private func reading(of list: StoredObject) -> PositionReading? {
        guard let facts = ObjectFacts.of(list), facts.head.isPlaylist, list.isComplete else {
            return nil
        }
        return PositionReading(object: list, limits: limits)
    }

    /// Has the position of a long list parsed before a request for it is handled.
    ///
    /// - Parameters:
    ///   - list: the list.
    ///   - id: the request.
    ///   - fetch: handles it again, once the list is parsed.
    /// - Returns: true if `fetch` will be called.
    func reads(
        _ list: StoredObject, before id: FetchID, fetch: @escaping () -> Void
    ) -> Bool {
        guard !readFirst.contains(id) else { return false }
        waiting[id] = read(list) { [self] in
            guard waiting.removeValue(forKey: id) != nil else { return }
            readFirst.insert(id)
            fetch()
            readFirst.remove(id)
        }
        return waiting[id] != nil
    }

    /// True while a request waits for a list to be parsed.
    func waits(_ id: FetchID) -> Bool { waiting[id] != nil }

    /// Cancels a request that may wait for a list.
    func cancel(_ id: FetchID) {
        if let request = waiting.removeValue(forKey: id) { texts.cancel(request) }
    }
}

/// Parses the position of a list; any thread may do that.
private struct PositionReading: Sendable {
    let object: StoredObject
    let limits: PlaylistLimits

    /// Nil for a list that cannot be parsed; blocks for the page cache.
    var position: LivePosition? {
        guard let total = object.total, let text = try? readBody(of: object, count: Int(total))
        else { return nil }
        return LivePosition(text, limits: limits)
    }
}
