import HLS
import Library
import Model
import Numbers
import Posix
import Routing
import Store

/// Segments that have left their windows, and are removed from the store once no window names them;
/// used on the keeper's thread.
///
/// All windows are looked at once for all segments that left within a second. A segment that other
/// players fetch too, outside of windows, stays.
final class LeavingSegments {
    private let services: TimeShiftServices
    /// The saved windows of players' sessions; recordings pin what they need.
    private lazy var savedWindows = SavedWindows(services.timeShift.windows)
    private var leaving: [(segment: TimeShiftSegment, list: ShiftedList)] = []
    private var named = NamedSegments<ObjectIdentifier>()

    /// The most segments that wait for removal; further ones stay in the store until retention
    /// evicts them.
    private static let mostLeaving = 32_768
    /// The time in a tick for reading saved windows to find what they name.
    private static let readingTime = Interval.milliseconds(100)

    init(_ services: TimeShiftServices) { self.services = services }

    /// Takes segments that have left the window of a list; `removeUnnamed` removes them.
    func take(_ segments: [TimeShiftSegment], of list: ShiftedList) {
        // A resource with byte ranges also contains segments that are still in the window.
        for segment in segments where segment.url != nil && segment.byteRange == nil {
            guard leaving.count < Self.mostLeaving else { return }
            leaving.append((segment, list))
        }
    }

    /// Notes that a window was saved, at a time of the monotonic clock.
    func note(saved name: WindowName, at now: Monotonic) { savedWindows.note(saved: name, at: now) }

    /// Removes segments that no window names now, and that were stored only for windows; blocks.
    ///
    /// Until all saved windows have been read, nothing is removed; a later call goes on.
    ///
    /// - Parameters:
    ///   - trustedNow: the time by which saved windows are too old; nil while the clock is not trusted.
    ///   - now: the same by the monotonic clock.
    func removeUnnamed(trustedNow: WallTime?, now: Monotonic) {
        guard !leaving.isEmpty else { return }
        var lists: [ObjectIdentifier: ShiftedList] = [:]
        for list in services.timeShift.all + leaving.map({ $0.list }) {
            lists[ObjectIdentifier(list)] = list
        }
        let loaded = lists.values.compactMap(\.name)
        guard let removable = namedByNoSaved(besides: loaded, trustedNow, now) else { return }
        named.keep(only: { lists[$0] != nil })
        for (id, list) in lists {
            let segments = list.shift.segments
            named.update(id, from: segments.first?.number ?? 0, count: segments.count) {
                segments[$0].digest
            }
        }
        let left = leaving
        leaving = []
        for (segment, list) in left {
            let digest = segment.digest
            guard removable.contains(digest), !named.contains(digest) else { continue }
            remove(segment, of: list)
        }
    }

    /// Returns the digests of the leaving segments that no saved window names; nil if there was no
    /// time to read all of these, or one of them cannot be read now.
    private func namedByNoSaved(
        besides loaded: [WindowName], _ trustedNow: WallTime?, _ now: Monotonic
    ) -> Set<Int>? {
        let segments = leaving.map { $0.segment }
        let end = Monotonic.now() + Self.readingTime
        repeat {
            do throws(SystemError) {
                let left = try savedWindows.unnamed(
                    segments, besides: loaded, wall: trustedNow, now: now)
                if let left { return Set(left.map(\.digest)) }
            } catch {
                return nil
            }
        } while Monotonic.now() < end
        return nil
    }

    private func remove(_ segment: TimeShiftSegment, of list: ShiftedList) {
        guard let url = segment.url else { return }
        let key = services.timeShift.storedKey(
            url, list.session, role: .segment, mark: segment.marks.segment)
        guard let object = services.store.peek(key), !services.store.isPinned(object),
            services.sessions.session(SessionID(object.title)).shift.window != nil
        else { return }
        services.store.remove(key)
        services.counters.add(.shiftDropped)
    }
}
