import HLS
import Lookahead
import URISyntax

#if canImport(FuzzSupport)
import FuzzSupport
#endif

/// Runs the pure parts on consecutive playlist versions: the longer window, its snapshots, offline
/// forms, the planners of look-ahead and feeds.
///
/// Each function returns a violation, or nil; a broken invariant ends the process.
/// `Fixtures/fuzz/drivers/sequence.swift` uses this file too.
enum ReadingSequences {
    /// Runs everything on the versions that `bytes` encode.
    static func fault(_ readings: FuzzedReadings) -> String? {
        guard let base = try? AbsoluteURL("http://origin.test/live/index.m3u8") else { return nil }
        var readings = readings
        let lists = readings.mediaPlaylists()
        return shiftFault(lists, base, &readings) ?? offlineFault(lists, base, &readings)
            ?? lookaheadFault(lists, base, &readings) ?? feedFault(lists, base, &readings)
    }

    // MARK: Time shift and recordings

    private static func shiftFault(
        _ lists: [[UInt8]], _ base: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var limits = TimeShift.Limits()
        // Small enough to be full after a few versions.
        if readings.happens(oneIn: 2) {
            limits.segmentCount = 50
            limits.placeholderCount = 20
        }
        var shift = TimeShift(limits: limits)
        var sibling = TimeShift(limits: limits)
        for list in lists {
            let countsAnew = readings.happens(oneIn: 3)
            let isAhead = readings.happens(oneIn: 2)
            if isAhead {
                _ = try? sibling.merge(list, base: base, in: .init(sibling: shift))
            }
            _ = try? shift.merge(
                list, base: base,
                in: .init(sibling: isAhead ? sibling : nil, countsAnew: countsAnew))
            if readings.happens(oneIn: 4) {
                shift.trim(to: .seconds(readings.happens(oneIn: 2) ? 0 : 3_600))
            }
            if readings.happens(oneIn: 4) {
                guard let restored = try? TimeShift(snapshot: shift.snapshot()) else {
                    return "a snapshot cannot be read"
                }
                shift = restored
            }
            if let fault = fault(of: shift, &readings) ?? fault(of: sibling, &readings) {
                return fault
            }
        }
        return nil
    }

    private static func fault(of shift: TimeShift, _ readings: inout FuzzedReadings) -> String? {
        for (one, next) in zip(shift.segments, shift.segments.dropFirst()) {
            if one.number + 1 != next.number { return "numbers jump" }
            let step = next.discontinuity - one.discontinuity
            if !(0...64).contains(step) { return "the discontinuity sequence jumps by \(step)" }
        }
        if let first = shift.segments.first, first.number < 0 || first.discontinuity < 0 {
            return "a number is negative"
        }
        let asked = shift.originNumber(of: readings.number())
        if asked < 0, !shift.segments.isEmpty { return "the origin is asked for \(asked)" }
        for ending in [TimeShift.Ending.live, .ended, .recorded] {
            let keepsAll = readings.happens(oneIn: 2)
            let window: Duration? = readings.happens(oneIn: 2) ? .seconds(3_600) : nil
            let text = shift.playlist(over: window, ending: ending) {
                keepsAll || $0.number % 2 == 0
            }
            if text.count > 4_096 * (shift.segments.count + 4) { return "the list is too long" }
            if !text.isEmpty, (try? Playlist(text, base: nil)) == nil { return "the list is none" }
        }
        guard let restored = try? TimeShift(snapshot: shift.snapshot()) else {
            return "a snapshot cannot be read"
        }
        if restored.segments.map(\.number) != shift.segments.map(\.number) {
            let (first, count) = (shift.segments.first?.number ?? 0, shift.segments.count)
            let (other, others) = (restored.segments.first?.number ?? 0, restored.segments.count)
            return "\(count) segments from \(first) came back as \(others) from \(other)"
        }
        return nil
    }

    // MARK: Offline forms

    private static func offlineFault(
        _ lists: [[UInt8]], _ base: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var offline: [AbsoluteURL: OfflineList] = [:]
        var variants: [OfflinePlan.Variant] = []
        for (index, list) in lists.enumerated() {
            let kept = 1 + readings.choose(3)
            let isPresent = { (reference: ResourceReference) in
                reference.mediaSequence % kept == 0
            }
            guard let url = try? AbsoluteURL("http://origin.test/live/v\(index).m3u8"),
                let found = try? Playlist(list, base: base, PlaylistReading(keepsLines: true))
            else { continue }
            let stored = OfflineList(found, isPresent: isPresent)
            let made = OfflinePlaylist.cut(found, missing: stored.missing)
            guard (try? Playlist(made.bytes, base: nil)) != nil else {
                return "what was cut is no playlist"
            }
            offline[url] = stored
            variants.append(.init(url: url, sound: [], encodingGroup: "k"))
        }
        let plan = OfflinePlan(variants, lists: offline)
        for variant in variants { _ = plan.missing(at: variant.url) }
        return nil
    }

    // MARK: Look-ahead

    private static func picture(
        _ list: [UInt8], _ base: AbsoluteURL
    ) -> (picture: CompactMediaList, urls: [AbsoluteURL])? {
        guard let found = try? Playlist(list, base: base) else { return nil }
        let segments = found.media?.segments ?? []
        return (CompactMediaList(found), segments.compactMap { $0.place?.url })
    }

    private static func lookaheadFault(
        _ lists: [[UInt8]], _ base: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var planner = LookaheadPlanner()
        let id = ListID(session: 1, url: base)
        let player = PlayerID(session: 1, client: 1)
        var now = 0.0
        for list in lists {
            guard let (picture, urls) = picture(list, base) else { continue }
            let bandwidth = readings.number()
            var actions = planner.saw(
                picture, of: id, .init(mode: .auto, bandwidth: bandwidth), at: now)
            let hints = PlayerHints([
                "br=\(readings.edge()),bl=\(readings.edge()),nrr=\"\(readings.edge())-\""
            ])
            for url in urls.prefix(3) {
                actions += planner.read(
                    url, from: Int64(readings.choose(3)), by: player, hints, at: now)
            }
            for action in actions {
                guard case .fetch(let fetch, _, _) = action else { continue }
                let size = Int64(max(0, readings.number()))
                _ = planner.ended(
                    fetch, AheadResult(.stored, bytes: size, size: size, seconds: 1), at: now)
            }
            now += Double(readings.choose(10))
            _ = planner.tick(at: now)
        }
        return nil
    }

    // MARK: Feeds

    private static func feedFault(
        _ lists: [[UInt8]], _ base: AbsoluteURL, _ readings: inout FuzzedReadings
    ) -> String? {
        var parameters = FeedParameters.standard
        if readings.happens(oneIn: 3) { parameters = .published }
        if readings.happens(oneIn: 3) { _ = parameters.set("headSeconds", 1e12) }
        let contents = Array(lists.indices)
        var planner = FeedPlanner(
            contents: contents, weights: contents.map { _ in 1 }, at: 0, .forward, parameters)
        var now = 0.0
        var actions = planner.start(at: now)
        for (content, list) in lists.enumerated() {
            let graph = (try? Playlist(readings.multivariantPlaylist(), base: base))?
                .multivariant.map { StreamGraph($0) }
            let stream = graph?.choice(.init(height: readings.number(), line: 1e6))
            if let stream { _ = graph?.companions(of: stream) }
            guard let (picture, urls) = picture(list, base) else { continue }
            let rate = stream.map { Double($0.bandwidth) / 8 }
            actions += planner.learned(content, FeedPlan([picture], rate: rate), at: now)
            if let url = urls.first { actions += planner.played(content, url, at: now) }
            planner.noticed(part: 0, bytes: Int64(max(0, readings.number())))
            now += Double(readings.choose(4))
            actions += planner.tick(at: now)
            for action in actions {
                guard case .fetch(let fetch, _, _, _) = action else { continue }
                let bytes = Int64(max(0, readings.number()))
                _ = planner.ended(fetch, AheadResult(.stored, bytes: bytes), at: now)
            }
            actions = planner.move(to: readings.choose(contents.count), at: now)
            for member in planner.window { _ = planner.report(on: member) }
        }
        return planner.wastedBytes < 0 ? "bytes are negative" : nil
    }
}
