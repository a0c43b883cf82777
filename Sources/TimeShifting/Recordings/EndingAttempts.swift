// The progress of the end of a recording, across attempts.
import Posix
import URISyntax

/// The attempts to write the playlists of a recording, each of which does only what is left.
///
/// Making them takes a look into the index for each segment, and writing them megabytes: doing both
/// every few seconds, for days, would hold up the other recordings and wear the disk.
struct EndingAttempts {
    /// The playlists as they were last made; empty before.
    private(set) var lists: [RecordingPlaylists.Finished] = []
    private var made: (losses: Int, time: Monotonic)?
    /// True if the end has waited since the lists were made.
    private var hasWaited = false
    /// The generation of each list that is written as it was last made.
    private var written: [AbsoluteURL: UInt64] = [:]
    private var nextPause = Self.pause

    /// The delay after an attempt that found no room; the first one after a failed reading.
    static let pause = Interval.seconds(5 as Int64)
    /// The longest delay after a failed reading, and the least time between two makings.
    static let longestPause = Interval.seconds(300 as Int64)

    /// True if the lists were not made yet, or if stored bytes, maybe those of a segment, were lost
    /// since and `longestPause` has passed; `losses` is the present `ObjectStore.losses`.
    func areToBeMade(losses: Int, now: Monotonic) -> Bool {
        guard let made else { return true }
        return made.losses != losses && now - made.time >= Self.longestPause
    }

    /// Records that the lists were made; those that are written and have not changed stay so.
    mutating func note(made lists: [RecordingPlaylists.Finished], losses: Int, at now: Monotonic) {
        let before = self.lists
        written = written.filter { url, _ in
            lists.first { $0.url == url }?.bytes == before.first { $0.url == url }?.bytes
        }
        self.lists = lists
        made = (losses, now)
        hasWaited = false
    }

    /// Records that a playlist has replaced another object, which the store counts as a loss.
    mutating func noteReplacement() { made?.losses &+= 1 }

    /// Records that it waits for room, or for the entry.
    mutating func noteWait() { hasWaited = true }

    /// True if the lists, all of which are written, may name what was lost while it waited;
    /// `losses` are `ObjectStore.losses` now.
    ///
    /// Without a wait there is nothing to look up again.
    func areOutdated(losses: Int) -> Bool {
        hasWaited && made.map { $0.losses != losses } ?? false
    }

    /// Returns the lists that are still to be written; `stored` returns the generation of the object
    /// that is stored for a URL.
    ///
    /// A player of the recording may have had another one stored since.
    func unwritten(stored: (AbsoluteURL) -> UInt64?) -> [RecordingPlaylists.Finished] {
        lists.filter { list in
            guard let generation = written[list.url] else { return true }
            return stored(list.url) != generation
        }
    }

    /// Records that a list is written.
    mutating func note(written list: RecordingPlaylists.Finished, as generation: UInt64) {
        written[list.url] = generation
    }

    /// Returns how long to wait after the entry could not be read: twice as long each time.
    mutating func pauseOfReading() -> Interval {
        let pause = nextPause
        nextPause = min(Interval(nanoseconds: 2 * pause.nanoseconds), Self.longestPause)
        return pause
    }
}
