import FuzzSupport
import HLS
import Testing
import URISyntax

/// The renditions of a title with holes: between the same discontinuities they are as long as the
/// video, within the segments that they have.
@Suite struct OfflineRenditionTests {
    private typealias Plans = OfflinePlanTests

    /// A playlist of a title whose origin has discontinuities.
    private struct Rendition {
        let name: String
        /// The durations of the segments between two discontinuities.
        let periods: [[Double]]
        var lacks: Set<Int> = []
        /// The tags of the whole list.
        var tags = ""
        /// True if all segments have one URI.
        var isOneFile = false
        var isLive = false

        var url: AbsoluteURL { Plans.url(name) }

        /// Cuts each period into segments of equal length, but for the last.
        static func periods(_ lengths: [Double], each seconds: Double) -> [[Double]] {
            lengths.map { length in
                stride(from: 0, to: length, by: seconds).map { min(seconds, length - $0) }
            }
        }

        func segmentName(_ index: Int) -> String { isOneFile ? name : "\(name)\(index)" }

        var names: Set<String> {
            let indices = 0..<periods.reduce(0) { $0 + $1.count }
            return Set(indices.filter { !lacks.contains($0) }.map(segmentName))
        }

        func playlist() throws -> Playlist {
            var text = "#EXTM3U\n#EXT-X-TARGETDURATION:60\n\(tags)"
            var index = 0
            for (number, period) in periods.enumerated() {
                if number > 0 { text += "#EXT-X-DISCONTINUITY\n" }
                for seconds in period {
                    text += "#EXTINF:\(seconds),\n\(segmentName(index))\n"
                    index += 1
                }
            }
            if !isLive { text += "#EXT-X-ENDLIST\n" }
            return try Corpus.list(Array(text.utf8))
        }

        func stored() throws -> OfflineList {
            OfflineList(try playlist()) { $0.tag != .inf || !lacks.contains($0.mediaSequence) }
        }
    }

    /// What a player reads of a rendition.
    private struct Shown {
        /// The seconds of each discontinuity sequence number.
        var lengths: [Int: Double] = [:]
        var names: Set<String> = []

        init(_ rendition: Rendition, missing: Set<Int>, _ pieces: [Int: [SegmentPiece]]) throws {
            let cut = OfflinePlaylist.cut(
                try rendition.playlist(), missing: missing, pieces: pieces)
            let list = try Corpus.list(cut.bytes)
            for segment in try #require(list.media).segments {
                let seconds = (segment.duration ?? .zero) / .seconds(1)
                lengths[segment.discontinuitySequence, default: 0] += seconds
                if let url = segment.reference?.url { names.insert(url.lastPathSegment) }
            }
        }
    }

    /// What is read of video, audio and subtitles, nil for those that are not listed, offline and
    /// exported.
    private static func shown(
        _ video: Rendition, _ audio: Rendition, _ text: Rendition
    ) throws -> (offline: [Shown?], exported: [Shown?]) {
        let renditions = [video, audio, text]
        var lists: [AbsoluteURL: OfflineList] = [:]
        for rendition in renditions { lists[rendition.url] = try rendition.stored() }
        let variants = [Plans.variant(video.name, sound: [audio.name])]
        let plan = OfflinePlan(variants, lists: lists, subtitles: [text.url])
        let export = ExportPlan(variants, lists: lists, subtitles: [text.url])
        var shown: (offline: [Shown?], exported: [Shown?]) = ([], [])
        for rendition in renditions {
            let url = rendition.url
            try shown.offline.append(
                plan.playable.contains(url)
                    ? Shown(rendition, missing: plan.missing(at: url), plan.pieces(at: url)) : nil)
            try shown.exported.append(
                export.lists(url)
                    ? Shown(rendition, missing: export.missing(at: url), export.pieces(at: url))
                    : nil)
        }
        return shown
    }

    @Test(
        arguments: [
            // The segments of two seconds that the video lacks, and the lengths of video and audio
            // by discontinuity. The origin's is before the fourth segment.
            ([0, 1, 2, 3], [1: 16], [1: 16]), ([11], [0: 6, 1: 16], [0: 6, 1: 16]),
            // It is in the hole, of which the audio lacks a segment; also the one before, so that
            // audio begins behind the hole; and it is where the hole ends.
            ([3, 4, 5, 6], [0: 6, 1: 10], [0: 6, 1: 10]),
            ([1, 2, 3, 4, 5, 6], [0: 2, 1: 10], [1: 10]),
            ([1, 2], [0: 2, 1: 18], [1: 18]),
            // Audio begins with it, behind two stretches of the video; another hole follows.
            ([1, 7], [0: 2, 1: 2, 2: 8, 3: 8], [2: 6, 3: 6]),
        ] as [(Set<Int>, [Int: Double], [Int: Double])])
    func `video, longer audio and subtitles have the same discontinuities`(
        _ missing: Set<Int>, _ video: [Int: Double], _ audio: [Int: Double]
    ) throws {
        for first in [0, 7] {
            let tags = first > 0 ? "#EXT-X-DISCONTINUITY-SEQUENCE:\(first)\n" : ""
            let rendition = { (name: String, seconds: Double) in
                Rendition(
                    name: name, periods: Rendition.periods([6, 18], each: seconds), tags: tags)
            }
            var pictures = rendition("v", 2)
            pictures.lacks = missing
            let shown = try Self.shown(pictures, rendition("s", 6), rendition("t", 12))
            let expected = [video, audio, video].map { lengths in
                Dictionary(uniqueKeysWithValues: lengths.map { ($0.key + first, $0.value) })
            }
            for renditions in [shown.offline, shown.exported] {
                #expect(renditions.map { $0?.lengths ?? [:] } == expected)
            }
        }
    }

    @Test func `subtitles that name one file for several segments are cut by their times`() throws {
        let video = Rendition(
            name: "v", periods: Rendition.periods([24], each: 4), lacks: [2])
        let audio = Rendition(name: "s", periods: video.periods)
        let text = Rendition(
            name: "t", periods: Rendition.periods([24], each: 6), isOneFile: true)
        let shown = try Self.shown(video, audio, text)
        for renditions in [shown.offline, shown.exported] {
            #expect(renditions.count == 3)
            for rendition in renditions { #expect(rendition?.lengths == [0: 8, 1: 12]) }
        }
    }

    @Test func `subtitles that are exported uncut have the video's discontinuities`()
        throws
    {
        let four = Rendition.periods([24], each: 4)
        let video = Rendition(name: "v", periods: four, lacks: [2], isLive: true)
        let audio = Rendition(name: "s", periods: four, isLive: true)
        let text = Rendition(
            name: "t", periods: Rendition.periods([24], each: 8), isLive: true)
        let shown = try Self.shown(video, audio, text).exported
        #expect(shown[0]?.lengths == [0: 8, 1: 12] && shown[1]?.lengths == [0: 8, 1: 12])
        #expect(shown[2]?.lengths == [0: 8, 1: 16])
    }

    @Test func `of a stretch, audio before the first discontinuity of the video is not listed`()
        throws
    {
        // The audio lacks its second segment, from 5 to 10 s; the video lists the segments whose
        // middles are outside of it, and the origin has a discontinuity at 11 s.
        let lengths: [Double] = [11, 33]
        let video = Rendition(name: "v", periods: Rendition.periods(lengths, each: 4))
        let audio = Rendition(name: "s", periods: Rendition.periods(lengths, each: 5), lacks: [1])
        let text = Rendition(name: "t", periods: Rendition.periods(lengths, each: 11))
        let shown = try Self.shown(video, audio, text).offline
        #expect(shown[0]?.lengths == [0: 4, 1: 33] && shown[1]?.lengths == [0: 5, 1: 33])
    }

    /// A rendition of which each segment is missing with some probability.
    private static func rendition(
        _ name: String, _ lengths: [Double], each seconds: Int, lacking probability: Double,
        tags: String, _ numbers: inout SeededNumbers
    ) -> Rendition {
        var made = Rendition(
            name: name, periods: Rendition.periods(lengths, each: Double(seconds)), tags: tags)
        for index in 0..<made.periods.reduce(0, { $0 + $1.count })
        where Double.random(in: 0..<1, using: &numbers) < probability {
            made.lacks.insert(index)
        }
        return made
    }

    @Test func `whatever is missing, audio and subtitles have the video's discontinuities`()
        throws
    {
        var numbers = SeededNumbers(seed: 1)
        for round in 0..<300 {
            var lengths: [Double] = []
            for _ in 0..<Int.random(in: 1...5, using: &numbers) {
                lengths.append(Double(Int.random(in: 3...40, using: &numbers)))
            }
            let tags = round % 2 == 0 ? "" : "#EXT-X-DISCONTINUITY-SEQUENCE:7\n"
            let (long, longer) = (
                Int.random(in: 2...6, using: &numbers), Int.random(in: 2...10, using: &numbers)
            )
            let isHoled = round % 3 == 0
            let renditions = [
                Self.rendition("v", lengths, each: long, lacking: 0.3, tags: tags, &numbers),
                Self.rendition(
                    "s", lengths, each: longer, lacking: isHoled ? 0.2 : 0, tags: tags, &numbers),
                Self.rendition("t", lengths, each: 12, lacking: 0, tags: tags, &numbers),
            ]
            let shown = try Self.shown(renditions[0], renditions[1], renditions[2]).offline
            guard let video = shown[0] else { continue }
            // A segment of the video is listed although the audio lacks some of its time.
            let part = isHoled ? Double(long) : 0
            // The beginning and the end of subtitles may differ by a second.
            for (index, slack) in [(1, Double(longer) + part), (2, 2 + part)] {
                guard let other = shown[index] else { continue }
                let isListed = other.lengths.keys.allSatisfy { video.lengths[$0] != nil }
                #expect(isListed, "\(round): \(video.lengths), \(other.lengths)")
                for (number, length) in video.lengths {
                    let difference = abs(length - (other.lengths[number] ?? 0))
                    #expect(difference < slack + 0.2, "\(round): \(number) of \(index)")
                }
                #expect(other.names.isSubset(of: renditions[index].names), "\(round)")
            }
            #expect(video.names.isSubset(of: renditions[0].names), "\(round)")
        }
    }
}
