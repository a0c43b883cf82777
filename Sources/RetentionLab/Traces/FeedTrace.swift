// A vertical feed of short videos: swipes, looks of two seconds, and favourites seen again.

/// Makes the trace of a few people on one daemon who swipe through a feed of short videos.
///
/// Where the figures are from:
/// - half of the videos are shorter than 14 s (Li and others, Dashlet, NSDI 2023), who also report that
///   people leave either at once or near the end, and that players fetch the next videos' starts;
/// - people see 45 % of a video on average, and 347 people had seen 4.9 million videos in 9.2 million
///   views, which is 53 % (Zannettou and others, CHI 2024): here about the same two shares come out;
/// - between 15 % and 59 % of what people consume they had before (Benson and others, WWW 2016), 35 % here;
///   what comes again follows recency, with a power of the distance, and quality (Anderson and others,
///   WWW 2014): here 15 % go back to something seen lately and 20 % to one of the viewer's favourites.
/// The number of people, their views a day, the bit rate and the number of favourites are assumptions.
package struct FeedTrace: TraceGenerator {
    package var days = 14
    package var viewers = 8
    /// In sessions of 30.
    package var viewsADay = 150
    /// Of all views, those of one of the viewer's favourites, by Zipf's law.
    package var favouriteShare = 0.2
    package var favourites = 30
    /// Favourites that a video watched that day takes the place of.
    package var favouriteTurnover = 0.03
    /// Of all views, those of something that the viewer watched lately.
    package var repeatShare = 0.15
    /// How many of the viewer's own views back a repeat may reach.
    package var repeatReach = 2_000
    /// Of the other views, those of the videos that everybody is shown.
    package var trendingShare = 0.4
    package var trendingVideos = 2_000
    /// Trending videos replaced each day.
    package var trendingTurnover = 0.05
    /// Seconds.
    package var medianLength = 14.0
    /// Bits a second.
    package var medianRate = 2_000_000.0
    package var segmentSeconds = 2.0
    /// How far ahead the player fetches, in seconds of playing, and how fast, in times of playing.
    package var readAheadSeconds = 10.0
    package var speed = 8.0
    /// Videos whose playlists, init section and first segment are fetched ahead.
    package var videosAhead = 2

    package init() {}

    package func requests(seed: UInt64) -> [TraceRequest] {
        var feed = Feed(trace: self, random: TraceRandom(seed: seed))
        for day in 0..<days { feed.runDay(day) }
        return feed.builder.finish()
    }
}

/// The state of one run.
private struct Feed {
    let trace: FeedTrace
    var random: TraceRandom
    var builder = TraceBuilder()
    var nextVideo: UInt64 = 1
    var trending: [UInt64] = []
    let ranks: ZipfRanks
    let favouriteRanks: ZipfRanks
    var favourites: [[UInt64]]
    /// What each viewer watched at least half of.
    var liked: [[UInt64]]

    init(trace: FeedTrace, random: TraceRandom) {
        self.trace = trace
        self.random = random
        ranks = ZipfRanks(count: trace.trendingVideos, exponent: 0.9)
        favouriteRanks = ZipfRanks(count: trace.favourites, exponent: 0.8)
        favourites = Array(repeating: [], count: trace.viewers)
        liked = Array(repeating: [], count: trace.viewers)
        for viewer in favourites.indices {
            for _ in 0..<trace.favourites { favourites[viewer].append(newVideo()) }
        }
        for _ in 0..<trace.trendingVideos { trending.append(newVideo()) }
    }

    mutating func newVideo() -> UInt64 {
        nextVideo += 1
        return nextVideo
    }

    mutating func runDay(_ day: Int) {
        for rank in trending.indices where random.happens(trace.trendingTurnover) {
            trending[rank] = newVideo()
        }
        for viewer in favourites.indices where !liked[viewer].isEmpty {
            for rank in 0..<trace.favourites where random.happens(trace.favouriteTurnover) {
                let lately = min(trace.viewsADay / 2, liked[viewer].count)
                let chosen = liked[viewer].count - 1 - random.below(lately)
                favourites[viewer][rank] = liked[viewer][chosen]
            }
        }
        // Sessions of all viewers in the order of their starts: what one is shown, another may repeat.
        var starts: [(time: Double, viewer: Int)] = []
        for viewer in 0..<trace.viewers {
            for _ in 0..<max(1, trace.viewsADay / 30) {
                starts.append((Double(day) * 86_400 + random.uniform(8...23) * 3_600, viewer))
            }
        }
        starts.sort { $0.time < $1.time }
        for start in starts { runSession(start.viewer, at: start.time) }
    }

    mutating func runSession(_ viewer: Int, at start: Double) {
        var time = start
        var coming: [(video: UInt64, isRepeat: Bool)] = []
        for _ in 0..<min(30, trace.viewsADay) {
            while coming.count <= trace.videosAhead { coming.append(choose(viewer)) }
            let (video, isRepeat) = coming.removeFirst()
            time += view(video, viewer, isRepeat, at: time) + 0.5
            for next in coming { fetchAhead(next.video, at: time) }
        }
    }

    mutating func choose(_ viewer: Int) -> (UInt64, Bool) {
        if random.happens(trace.favouriteShare) {
            return (favourites[viewer][favouriteRanks.draw(&random)], true)
        }
        // A share of what is left, so that it is the share of all.
        let isRepeat = random.happens(trace.repeatShare / (1 - trace.favouriteShare))
        if isRepeat {
            let reach = random.logUniform(1...trace.repeatReach)
            if reach <= liked[viewer].count {
                return (liked[viewer][liked[viewer].count - reach], true)
            }
        }
        if random.happens(trace.trendingShare) { return (trending[ranks.draw(&random)], false) }
        return (newVideo(), false)
    }

    /// Plays a video and returns for how long, in seconds.
    mutating func view(
        _ video: UInt64, _ viewer: Int, _ isRepeat: Bool, at start: Double
    ) -> Double {
        let facts = Video(video, trace)
        let watched = watchTime(facts.length, isRepeat)
        if watched >= facts.length / 2 { liked[viewer].append(video) }
        addStart(facts, at: start, isAhead: false)
        for number in 0..<facts.segments {
            let position = Double(number) * trace.segmentSeconds
            let asked = max(position / trace.speed, position - trace.readAheadSeconds)
            guard asked <= watched else { break }
            builder.add(facts.segment(number), of: video, at: start + 0.1 + asked)
        }
        return watched
    }

    /// Early swipes, leaves in the middle, and whole views.
    mutating func watchTime(_ length: Double, _ isRepeat: Bool) -> Double {
        let (early, middle) = isRepeat ? (0.2, 0.2) : (0.65, 0.15)
        let kind = random.unit()
        if kind < early { return min(length, random.exponential(mean: 2)) }
        return kind < early + middle ? random.uniform(0...length) : length
    }

    mutating func fetchAhead(_ video: UInt64, at time: Double) {
        let facts = Video(video, trace)
        addStart(facts, at: time, isAhead: true)
        builder.add(facts.segment(0), of: video, at: time, isAhead: true)
    }

    mutating func addStart(_ facts: Video, at time: Double, isAhead: Bool) {
        let playlist = TracePart.mediaPlaylist(segments: facts.segments)
        builder.add(.multivariantPlaylist, of: facts.video, at: time, isAhead: isAhead)
        builder.add(playlist, of: facts.video, at: time, isAhead: isAhead)
        builder.add(.initSection, of: facts.video, at: time, isAhead: isAhead)
    }
}

/// What a video is like; follows from its number alone.
private struct Video {
    let video: UInt64
    let length: Double
    let segmentBytes: Double
    let segments: Int

    init(_ video: UInt64, _ trace: FeedTrace) {
        var random = TraceRandom(seed: video &* 31)
        self.video = video
        length = random.logNormal(median: trace.medianLength, sigma: 0.9, limits: 4...180)
        let rate = random.logNormal(median: trace.medianRate, sigma: 0.3, limits: 8e5...6e6)
        segmentBytes = rate / 8 * trace.segmentSeconds
        segments = Int((length / trace.segmentSeconds).rounded(.up))
    }

    func segment(_ number: Int) -> TracePart {
        .segment(number, of: video, bytes: segmentBytes)
    }
}
