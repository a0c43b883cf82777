// The segments that saved windows of lists that are not in memory name: other windows must not
// remove them.
package import HLS
package import Posix
import Routing

/// The segments of saved windows, so that a player who comes back finds them.
///
/// For one thread, which may block on the disk. A window is read when it first counts; of each of its
/// segments eight bytes stay in memory.
package final class SavedWindows {
    private enum SaveTime {
        /// By the wall clock, which may have been set since.
        case inEarlierRun(WallTime)
        case inThisRun(Monotonic)
    }

    private struct Window {
        let saved: SaveTime
        /// The digests of its segments, ascending; nil until it is read.
        var digests: [Int]?
        /// The first and the last time that it could not be read; nil before.
        var failure: (since: Monotonic, last: Monotonic)?

        /// True unless it was saved too long ago.
        func counts(wall: WallTime?, now: Monotonic) -> Bool {
            switch saved {
            case .inThisRun(let saved): now - saved < SavedWindows.longest
            case .inEarlierRun(let saved): wall.map { $0 - saved < SavedWindows.longest } ?? true
            }
        }

        func names(_ digest: Int) -> Bool {
            guard let digests else { return false }
            var (low, high) = (0, digests.count)
            while low < high {
                let middle = (low + high) / 2
                if digests[middle] < digest { low = middle + 1 } else { high = middle }
            }
            return low < digests.count && digests[low] == digest
        }
    }

    /// How long a saved window counts: after that, its segments have left every window.
    private static let longest = Interval.seconds(Int64(WindowLength.longest))

    private let files: TimeShiftFiles
    /// By the names of their files.
    private var windows: [String: Window]
    /// The names of the files of windows in memory: each is a digest.
    private var names: [WindowName: String] = [:]
    private static let mostNames = 4_096
    /// When windows were last removed that do not count any more.
    private var lastPrune: Monotonic?
    private static let pruneInterval = Interval.seconds(60 as Int64)

    /// Lists the windows that earlier runs saved; blocks on the disk.
    package init(_ files: TimeShiftFiles) {
        self.files = files
        windows = files.saved().mapValues { Window(saved: .inEarlierRun($0)) }
    }

    /// Records that a window has been saved.
    package func note(saved name: WindowName, at now: Monotonic) {
        windows[file(of: name)] = Window(saved: .inThisRun(now))
    }

    /// Removes windows that do not count any more, and names of files that are not needed now.
    private func prune(wall: WallTime?, now: Monotonic) {
        if let lastPrune, now - lastPrune < Self.pruneInterval { return }
        lastPrune = now
        windows = windows.filter { $0.value.counts(wall: wall, now: now) }
        guard names.count > Self.mostNames else { return }
        names = names.filter { windows[$0.value] != nil }
        if names.count > Self.mostNames { names = [:] }
    }

    private func file(of name: WindowName) -> String {
        if let known = names[name] { return known }
        let made = name.fileName
        names[name] = made
        return made
    }

    /// Returns the segments that no saved window names; blocks on the disk to read one window.
    ///
    /// - Parameters:
    ///   - segments: the segments that are looked for.
    ///   - loaded: the windows in memory: they may have changed since they were saved.
    ///   - wall: the time, which decides which windows of earlier runs count; nil for all of them,
    ///     since the clock is not trusted.
    ///   - now: the same by the monotonic clock, for windows of this run.
    /// - Returns: the segments that no saved window names, in their order; nil while windows are
    ///   unread, of which each call reads one.
    /// - Throws: what keeps a window from being read now; it counts as unread, and later calls read
    ///   the others first. One that could not be read for half a minute names nothing.
    package func unnamed(
        _ segments: [TimeShiftSegment], besides loaded: [WindowName], wall: WallTime?,
        now: Monotonic
    ) throws(SystemError) -> [TimeShiftSegment]? {
        prune(wall: wall, now: now)
        guard !windows.isEmpty else { return segments }
        let skipped = Set(loaded.map { file(of: $0) })
        let counted = windows.keys.filter { !skipped.contains($0) }
        // A window of a day takes a while.
        let unread = counted.filter { windows[$0]?.digests == nil }
            .min { lastFailure($0) < lastFailure($1) }
        if let unread {
            let digests = try digests(in: unread, now: now)
            windows[unread]?.digests = digests
            guard counted.allSatisfy({ windows[$0]?.digests != nil }) else { return nil }
        }
        return segments.filter { segment in
            let digest = segment.digest
            return !counted.contains { windows[$0]?.names(digest) ?? false }
        }
    }

    private func lastFailure(_ file: String) -> Monotonic {
        windows[file]?.failure?.last ?? Monotonic(nanoseconds: 0)
    }

    /// Reads what a window names, ascending; nothing if it could not be read for too long.
    private func digests(in file: String, now: Monotonic) throws(SystemError) -> [Int] {
        do throws(SystemError) {
            let shift = try files.load(file: file, limits: TimeShift.Limits())
            return shift?.digests ?? []
        } catch {
            let since = windows[file]?.failure?.since ?? now
            windows[file]?.failure = (since: since, last: now)
            guard now - since >= TimeShiftFiles.patience else { throw error }
            files.noteGivenUp(file, error)
            return []
        }
    }
}
