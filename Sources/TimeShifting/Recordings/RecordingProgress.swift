import HLS
import Library
import Numbers
import Synchronization

/// The progress of a recording.
extension Recording {
    /// The recorded and the lost segments of each list.
    var progress: [(label: String, segments: Int, seconds: Double, lost: Int)] {
        zip(order.lists, followers).map { chosen, follower in
            let fetched = follower.fetches.stored
            let (shift, gone) = follower.list.state.withLock {
                ($0.shift, $0.missing.union($0.open))
            }
            var (segments, duration, lost) = (0, Duration.zero, shift.lostCount)
            for segment in shift.segments {
                let isOld = segment.number < shift.windowStart
                if fetched.contains(segment.number)
                    || (isOld && !segment.isGap && !gone.contains(segment.number))
                {
                    segments += 1
                    duration += segment.duration
                } else if isOld {
                    lost = lost.addingSaturated(1)
                }
            }
            return (chosen.label, segments, duration / .seconds(1), lost)
        }
    }

    package var bytes: Int64 { order.bytes.addingSaturated(fetchedBytes) }
}
