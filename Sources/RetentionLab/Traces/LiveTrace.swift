// Live channels and films together.
import Retention

/// Generates the trace of a few people on one daemon who watch live television and films.
///
/// Sources of the figures:
/// - most views of a channel last seconds before a long one (Cha and others, Watching Television
///   over
///   an IP Network, IMC 2008: zapping, and channels by Zipf's law);
/// - films are browsed, left and repeated as in ``SeriesTrace``.
/// The number of people and channels, the bit rate and the share of viewers who start behind the
/// live edge are assumptions. Reloads of live playlists are left out: freshness decides about them,
/// not retention.
package struct LiveTrace: TraceGenerator {
    package var days = 7
    package var viewers = 12
    package var channels = 10
    package var films = 300
    package var sessionsADay = 2
    /// The share of sessions with live channels.
    package var liveShare = 0.5
    /// Short views of channels before a long one, on average, and their mean length in seconds.
    package var zaps = 3.0
    package var meanZap = 10.0
    /// Mean length of a long view in seconds.
    package var meanStay = 2_400.0
    /// The share of long views that start up to an hour behind the live edge.
    package var lateShare = 0.1
    package var repeatShare = 0.18
    package var repeatReach = 100
    package var leftShare = 0.4
    /// Bits per second of a channel.
    package var channelRate = 5_000_000.0

    package init() {}

    package func requests(seed: UInt64) -> [TraceRequest] {
        var evenings = LiveEvenings(trace: self, random: TraceRandom(seed: seed))
        for day in 0..<days { evenings.runDay(day) }
        return evenings.builder.finish()
    }
}

/// The state of one run.
private struct LiveEvenings {
    let trace: LiveTrace
    var random: TraceRandom
    var builder = TraceBuilder()
    let channelRanks: ZipfRanks
    let filmRanks: ZipfRanks
    var seen: [[Episode]]

    init(trace: LiveTrace, random: TraceRandom) {
        self.trace = trace
        self.random = random
        channelRanks = ZipfRanks(count: trace.channels, exponent: 1)
        filmRanks = ZipfRanks(count: trace.films, exponent: 0.8)
        seen = Array(repeating: [], count: trace.viewers)
    }

    mutating func runDay(_ day: Int) {
        for viewer in 0..<trace.viewers {
            for _ in 0..<trace.sessionsADay {
                let start = Double(day) * 86_400 + random.uniform(16...23) * 3_600
                if random.happens(trace.liveShare) {
                    watchLive(at: start)
                } else {
                    watchFilm(viewer, at: start)
                }
            }
        }
    }

    mutating func watchLive(at start: Double) {
        var time = start
        for _ in 1..<random.geometric(mean: trace.zaps + 1) {
            let looked = random.exponential(mean: trace.meanZap)
            stay(at: time, for: looked, behind: 18)
            time += looked + 1
        }
        let behind = random.happens(trace.lateShare) ? random.uniform(60...3_600) : 18
        stay(at: time, for: random.exponential(mean: trace.meanStay), behind: behind)
    }

    /// Plays a channel, starting `behind` seconds behind its live edge.
    mutating func stay(at start: Double, for watched: Double, behind: Double) {
        let title = 2_000_000 + UInt64(channelRanks.draw(&random))
        let bytes = trace.channelRate / 8 * Episode.segmentSeconds
        builder.add(.multivariantPlaylist, of: title, at: start)
        builder.add(.initSection, of: title, at: start)
        let first = Int(max(0, start - behind) / Episode.segmentSeconds)
        var position = 0.0
        while true {
            let ahead = min(Episode.readAheadSeconds, max(0, behind - Episode.segmentSeconds))
            let asked = max(position / Episode.speed, position - ahead)
            guard asked <= watched else { break }
            let number = first + Int(position / Episode.segmentSeconds)
            let part = TracePart.segment(number, of: title, bytes: bytes, kind: .live)
            builder.add(part, of: title, at: start + 0.2 + asked)
            position += Episode.segmentSeconds
        }
    }

    mutating func watchFilm(_ viewer: Int, at start: Double) {
        var time = start
        for _ in 1..<random.geometric(mean: 2) {
            let film = drawFilm()
            let looked = random.exponential(mean: 90)
            film.play(&builder, at: time, for: looked)
            time += looked + 15
        }
        let film = choose(viewer)
        let isLeft = random.happens(trace.leftShare)
        let watched = isLeft ? random.uniform(0...film.length) : film.length
        film.play(&builder, at: time, for: watched)
        if watched >= film.length / 2 { seen[viewer].append(film) }
    }

    mutating func choose(_ viewer: Int) -> Episode {
        if !seen[viewer].isEmpty, random.happens(trace.repeatShare) {
            let reach = random.logUniform(1...trace.repeatReach)
            if reach <= seen[viewer].count { return seen[viewer][seen[viewer].count - reach] }
        }
        return drawFilm()
    }

    mutating func drawFilm() -> Episode {
        let number = 3_000_000 + UInt64(filmRanks.draw(&random))
        return Episode(number, series: number)
    }
}
