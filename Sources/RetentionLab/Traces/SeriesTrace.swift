// Evenings with series: browsing, an episode or two, repeats.

/// Generates the trace of a few households on one daemon who watch series.
///
/// Sources of the figures:
/// - people browse, one short view after another, and see about a fifth of what they start to the end
///   (Chen and others, Video Browsing, 2013), the short views with exponential lengths (PPLive, 2014);
/// - 18 % of the time goes to what was seen before (Roku, Video-on-Demand Evolution, 2024), at
///   distances that follow a power law (Anderson and others, WWW 2014);
/// - popularity follows Zipf's law with an exponent near 1.
/// The number of people, the size of the catalogue and the bit rate are assumptions.
package struct SeriesTrace: TraceGenerator {
    package var days = 21
    package var viewers = 10
    package var series = 80
    package var episodesASeries = 20
    /// Films and first episodes available for browsing.
    package var browsedTitles = 1_000
    /// The share of evenings on which a viewer watches.
    package var eveningShare = 0.8
    /// Short views before the first long one, and long ones, on average.
    package var browses = 2.0
    package var episodesAnEvening = 2.0
    package var repeatShare = 0.18
    /// How far back a repeat may reach, in the viewer's own views.
    package var repeatReach = 200
    /// The share of long views that end somewhere in the middle.
    package var leftShare = 0.4
    /// Seconds.
    package var meanBrowse = 90.0

    package init() {}

    package func requests(seed: UInt64) -> [TraceRequest] {
        var evenings = Evenings(trace: self, random: TraceRandom(seed: seed))
        for day in 0..<days { evenings.runDay(day) }
        return evenings.builder.finish()
    }
}

/// A viewer's position in a series.
private struct Progress {
    var series: UInt64 = 0
    var episode: UInt64 = 0
    var seen: [Episode] = []
}

/// The state of one run.
private struct Evenings {
    let trace: SeriesTrace
    var random: TraceRandom
    var builder = TraceBuilder()
    var progress: [Progress]
    let seriesRanks: ZipfRanks
    let browseRanks: ZipfRanks

    init(trace: SeriesTrace, random: TraceRandom) {
        self.trace = trace
        self.random = random
        progress = Array(repeating: Progress(), count: trace.viewers)
        seriesRanks = ZipfRanks(count: trace.series, exponent: 1)
        browseRanks = ZipfRanks(count: trace.browsedTitles, exponent: 1)
        for viewer in progress.indices { startSeries(viewer, isFirst: true) }
    }

    mutating func startSeries(_ viewer: Int, isFirst: Bool = false) {
        progress[viewer].series = UInt64(seriesRanks.draw(&self.random)) + 1
        progress[viewer].episode = isFirst ? UInt64(random.below(trace.episodesASeries)) : 0
    }

    mutating func runDay(_ day: Int) {
        for viewer in 0..<trace.viewers where random.happens(trace.eveningShare) {
            var time = Double(day) * 86_400 + random.uniform(17...22) * 3_600
            for _ in 1..<random.geometric(mean: trace.browses + 1) { time += browse(at: time) }
            for _ in 0..<random.geometric(mean: trace.episodesAnEvening) {
                time += watch(viewer, at: time) + 10
            }
        }
    }

    mutating func browse(at start: Double) -> Double {
        let rank = UInt64(browseRanks.draw(&random))
        // The browsed titles include the first episodes of all series.
        let isSeries = rank < UInt64(trace.series)
        let episode =
            isSeries
            ? makeEpisode(series: rank + 1, number: 0)
            : Episode(1_000_000 + rank, series: 1_000_000 + rank)
        let watched = min(episode.length, random.exponential(mean: trace.meanBrowse))
        episode.play(&builder, at: start, for: watched)
        return watched + 15
    }

    mutating func watch(_ viewer: Int, at start: Double) -> Double {
        let episode = choose(viewer)
        let isLeft = random.happens(trace.leftShare)
        let watched = isLeft ? random.uniform(0...episode.length) : episode.length
        episode.play(&builder, at: start, for: watched)
        if watched >= episode.length / 2 { progress[viewer].seen.append(episode) }
        return watched
    }

    mutating func choose(_ viewer: Int) -> Episode {
        let seen = progress[viewer].seen
        if !seen.isEmpty, random.happens(trace.repeatShare) {
            let reach = random.logUniform(1...trace.repeatReach)
            if reach <= seen.count { return seen[seen.count - reach] }
        }
        if Int(progress[viewer].episode) == trace.episodesASeries { startSeries(viewer) }
        defer { progress[viewer].episode += 1 }
        return makeEpisode(series: progress[viewer].series, number: progress[viewer].episode)
    }

    func makeEpisode(series: UInt64, number: UInt64) -> Episode {
        Episode(series * 1_000 + number, series: series)
    }
}
