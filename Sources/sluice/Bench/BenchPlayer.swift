/// A virtual player: plays a title through a daemon by the clock and counts where it has to wait.
import Glibc
import Posix
import Reactor
import Synchronization

/// What one play was like.
struct PlayFigures: Sendable {
    /// Seconds from the start to the first segment, which is what a viewer waits for.
    var startUp = 0.0
    /// Times that it ran dry, and the seconds that they took.
    var stalls = 0
    var stalled = 0.0
    var segments = 0
    /// True where a request failed.
    var isBroken = false
}

/// Fetches one segment after the other while less than its buffer is ahead, as players do.
struct BenchPlayer {
    let base: String
    /// The title's URL at the CDN.
    let title: String
    /// Seconds that it keeps ahead of what is shown.
    var buffer = 8.0
    /// The most segments that it plays.
    var most = Int.max

    /// Plays until the end of the title or until `isWanted` says no; blocks.
    func play(isWanted: @escaping () -> Bool) -> PlayFigures {
        let start = Monotonic.now()
        var figures = PlayFigures()
        guard let list = segments() else {
            figures.isBroken = true
            return figures
        }
        // Seconds of media that have come, and when showing began.
        var loaded = 0.0
        var shownSince: Monotonic?
        var stalled = 0.0
        for (url, seconds) in list.prefix(most) {
            while let shownSince, isWanted() {
                let shown = Monotonic.now().seconds(since: shownSince) - stalled
                guard loaded - shown > buffer else { break }
                usleep(5_000)
            }
            guard isWanted() else { break }
            guard BenchFetch.get(base + url) != nil else {
                figures.isBroken = true
                break
            }
            let now = Monotonic.now()
            if let shownSince {
                let late = now.seconds(since: shownSince) - stalled - loaded
                if late > 0.02 {
                    figures.stalls += 1
                    figures.stalled += late
                    stalled += late
                }
            } else {
                shownSince = now
                figures.startUp = now.seconds(since: start)
            }
            loaded += seconds
            figures.segments += 1
        }
        return figures
    }

    /// Paths and durations of the segments, out of the lists as the daemon gives them.
    private func segments() -> [(url: String, seconds: Double)]? {
        guard let master = BenchFetch.get("\(base)/\(title)"),
            let media = Self.lines(master.body).first(where: { !$0.hasPrefix("#") }),
            let list = BenchFetch.get(base + media)
        else { return nil }
        var found: [(url: String, seconds: Double)] = []
        var seconds = 0.0
        for line in Self.lines(list.body) {
            if line.hasPrefix("#EXTINF:") {
                seconds = Double(line.dropFirst(8).prefix { $0 != "," }) ?? 0
            } else if line.hasPrefix("#EXT-X-MAP:"), let path = Self.quoted(line) {
                guard BenchFetch.get(base + path) != nil else { return nil }
            } else if !line.hasPrefix("#"), !line.isEmpty {
                found.append((String(line), seconds))
            }
        }
        return found.isEmpty ? nil : found
    }

    static func lines(_ body: [UInt8]) -> [Substring] {
        String(decoding: body, as: UTF8.self).split(separator: "\n")
    }

    static func quoted(_ line: Substring) -> String? {
        let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.count >= 3 ? String(parts[1]) : nil
    }
}

/// A player on a thread of its own.
final class PlayerThread: Sendable {
    private let thread: PosixThread
    private let isWanted: Flag

    private final class Flag: Sendable {
        let value = Atomic<Bool>(true)
    }

    private final class Box: Sendable {
        let figures = Mutex<PlayFigures?>(nil)
    }

    private let box: Box

    init(_ player: BenchPlayer) throws(SystemError) {
        let box = Box()
        let flag = Flag()
        self.box = box
        isWanted = flag
        thread = try PosixThread(name: "player") {
            let played = player.play { flag.value.load(ordering: .relaxed) }
            box.figures.withLock { $0 = played }
        }
    }

    /// Waits for the end of its title.
    func finish() -> PlayFigures {
        thread.join()
        return box.figures.withLock { $0 } ?? PlayFigures(isBroken: true)
    }

    /// Stops it at its next piece and waits.
    func stop() -> PlayFigures {
        isWanted.value.store(false, ordering: .relaxed)
        return finish()
    }
}
