package import URISyntax

/// A segment of a live stream, remembered for time shift.
package struct TimeShiftSegment: Sendable {
    /// The media sequence number in the shifted list; rises by one from segment to segment.
    package let number: Int
    /// The media sequence number that the origin gave it.
    package let originNumber: Int
    /// The number of times that the origin had restarted its numbering before.
    package let epoch: Int
    /// The number of other segments that its URL named before; part of the identity of its bytes.
    package internal(set) var generation: Int
    /// The discontinuity sequence number in the shifted list.
    package let discontinuity: Int
    /// Nil for a placeholder of a segment that was never seen, and for opaque URIs.
    package let url: AbsoluteURL?
    package let byteRange: SubRange?
    package let duration: Duration
    /// The date at which it begins; nil if unknown.
    package let date: DateTime?
    /// True if the origin marks it as missing, or it was never seen.
    package internal(set) var isGap: Bool
    /// True for a placeholder of a segment that was never seen.
    package let isPlaceholder: Bool

    /// Tells apart the resources that its URLs have named over time; set by the caller.
    package internal(set) var marks = Marks()

    /// A number for each URL needed for playback; 0 unless the URL was reused for another resource.
    package struct Marks: Hashable, Sendable {
        package var segment: UInt32 = 0
        package var map: UInt32 = 0
        /// In the order of the segment's `keyURLs`; empty if all are 0.
        package var keys: [UInt32] = []

        package init(segment: UInt32 = 0, map: UInt32 = 0, keys: [UInt32] = []) {
            self.segment = segment
            self.map = map
            self.keys = keys.allSatisfy { $0 == 0 } ? [] : keys
        }
    }

    /// The bytes that it takes in a playlist at most, besides its context where that begins.
    ///
    /// A renumbered segment has the lines of keys whose IV is the media sequence number for itself.
    var byteCount: Int {
        let numbered = number == originNumber ? 0 : context.keys.numberedByteCount
        return uri.count + lines.count + numbered + Self.generatedByteCount
    }
    /// The most bytes of the lines that are generated: discontinuities, a date, a byte range, a gap
    /// with its duration and placeholder.
    private static let generatedByteCount = 512

    /// A digest of URI and byte range, which differs from run to run.
    package var digest: Int { name.hashValue }
    var name: SegmentName { SegmentName(uri, byteRange) }

    /// The absolute URI as written.
    let uri: [UInt8]
    /// Its own tags and comments with LF, except those that are regenerated.
    let lines: [UInt8]
    /// True if the origin wrote the date.
    let hasOwnDate: Bool
    var context: TimeShiftContext

    /// The keys of the segment and of its initialization section, sorted; at most a few.
    package var keyURLs: [AbsoluteURL] { context.keyURLs }
    /// Keys of which playback needs one of each array.
    package var keyChoices: [[AbsoluteURL]] {
        let choices = [context.map == nil ? [] : context.mapKeys.sufficientURLs]
        return (choices + [context.keys.sufficientURLs]).filter { !$0.isEmpty }
    }

    /// What playback of a segment needs besides its own bytes, to be told from that of others.
    ///
    /// Equal values stand for the same keys and initialization section. They are compared and hashed
    /// without the URLs: one may be as long as a line, and thousands of segments may share it.
    package struct Structure: Hashable, Sendable {
        private let context: TimeShiftContext
        private let map: UInt32
        private let keys: [UInt32]

        init(_ context: TimeShiftContext, _ marks: Marks) {
            self.context = context
            map = marks.map
            keys = marks.keys
        }

        package static func == (left: Structure, right: Structure) -> Bool {
            left.context === right.context && left.map == right.map && left.keys == right.keys
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(context))
            hasher.combine(map)
            hasher.combine(keys)
        }
    }

    /// Its keys and its initialization section.
    package var structure: Structure { Structure(context, marks) }

    /// Returns the mark of a key; 0 for a key that is not one of `keyURLs`.
    package func mark(ofKey url: AbsoluteURL) -> UInt32 {
        context.mark(ofKey: url, marks)
    }

    /// The initialization section that its playback needs.
    package var mapURL: AbsoluteURL? { context.mapURL }
    /// The bytes of the initialization section; nil for the whole resource.
    package var mapRange: SubRange? { context.mapRange }
}

/// The comparison with segments of other windows of the list; hosts, folders and queries are
/// ignored, since they may carry tokens.
extension TimeShiftSegment {
    /// True if a window lists the same segment.
    func isSame(as seen: LiveWindow.Segment) -> Bool {
        // A date that is not its own may be off by as much as the durations before it.
        let date = seen.hasOwnDate ? seen.date : nil
        return isSame(seen.uri, seen.url, seen.byteRange, seen.duration, date)
    }

    /// True if both are the same segment, as in another window of the same list.
    func isSame(as other: TimeShiftSegment) -> Bool {
        isSame(other.uri, other.url, other.byteRange, other.duration, other.date)
    }

    private func isSame(
        _ newURI: [UInt8], _ newURL: AbsoluteURL?, _ range: SubRange?, _ newDuration: Duration,
        _ newDate: DateTime?
    ) -> Bool {
        guard byteRange == range else { return false }
        if let old = date, let new = newDate,
            abs(old.milliseconds - new.milliseconds) > 10_000
        {
            return false
        }
        if uri == newURI { return true }
        guard let old = url, let new = newURL else { return false }
        return old.lastPathSegment == new.lastPathSegment && duration == newDuration
            && !new.lastPathSegment.isEmpty
    }
}

/// The key and map lines that apply to a segment; shared by segments under the same tags.
final class TimeShiftContext: Sendable, Equatable {
    /// The keys in force at the map, which encrypt it (8216bis, 4.4.4.5).
    let mapKeys: KeysInForce
    let map: [UInt8]?
    let keys: KeysInForce
    /// The URLs of the keys to fetch, those in force at the map included; sorted, since a snapshot
    /// does not keep the order of keys.
    let keyURLs: [AbsoluteURL]
    let mapURL: AbsoluteURL?
    let mapRange: SubRange?
    /// The bytes of its lines.
    let byteCount: Int

    init(
        mapKeys: KeysInForce = KeysInForce(), map: [UInt8]? = nil,
        keys: KeysInForce = KeysInForce(),
        mapURL: AbsoluteURL? = nil, mapRange: SubRange? = nil
    ) {
        self.mapKeys = mapKeys
        self.map = map
        self.keys = keys
        let urls = keys.urls + (map == nil ? [] : mapKeys.urls)
        keyURLs =
            urls.count < 2
            ? urls : Set(urls).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        self.mapURL = mapURL
        self.mapRange = mapRange
        byteCount = mapKeys.byteCount + (map?.count ?? 0) + keys.byteCount
    }

    static let none = TimeShiftContext()

    static func == (left: TimeShiftContext, right: TimeShiftContext) -> Bool {
        left === right
            || (left.map == right.map && left.mapKeys == right.mapKeys && left.keys == right.keys)
    }

    /// Returns the same context, with those lines of `other` that are the same.
    ///
    /// Each window is read anew: without this each change of a key would keep a copy of all others.
    func sharing(_ other: TimeShiftContext) -> TimeShiftContext {
        TimeShiftContext(
            mapKeys: mapKeys.sharing(other.mapKeys), map: map == other.map ? other.map : map,
            keys: keys.sharing(other.keys), mapURL: mapURL, mapRange: mapRange)
    }

    /// Returns the mark of a key; 0 for a key that is not one of `keyURLs`.
    func mark(ofKey url: AbsoluteURL, _ marks: TimeShiftSegment.Marks) -> UInt32 {
        guard !marks.keys.isEmpty, let index = keyURLs.firstIndex(of: url),
            marks.keys.indices.contains(index)
        else { return 0 }
        return marks.keys[index]
    }

    /// True if a URL of a key that this context and another one have in common names another key
    /// there.
    func hasOtherKey(
        _ marks: TimeShiftSegment.Marks, than other: TimeShiftContext,
        _ otherMarks: TimeShiftSegment.Marks
    ) -> Bool {
        // Nearly always: no URL is compared.
        if self === other || marks.keys.isEmpty && otherMarks.keys.isEmpty {
            return marks.keys != otherMarks.keys
        }
        return keyURLs.contains { url in
            other.keyURLs.contains(url)
                && mark(ofKey: url, marks) != other.mark(ofKey: url, otherMarks)
        }
    }

    /// Returns the lines that change from a previous context to this one.
    ///
    /// - Parameters:
    ///   - keys: the keys of this context as they are to be written.
    ///   - previous: the context before, with its keys as written; nil at the start of a list.
    ///   - repeatsMap: true if the same line names another initialization section now.
    ///   - repeatsKeys: true if the same lines name other keys now.
    /// - Returns: the lines, without line breaks.
    func lines(
        _ keys: KeysInForce, after previous: (context: TimeShiftContext, keys: KeysInForce)?,
        repeatsMap: Bool, repeatsKeys: Bool
    ) -> [[UInt8]] {
        let inForce = previous?.keys ?? KeysInForce()
        guard let map, repeatsMap || hasOtherMap(than: previous?.context) else {
            return keys.lines(replacing: inForce, repeatsAll: repeatsKeys)
        }
        return mapKeys.lines(replacing: inForce, repeatsAll: repeatsKeys) + [map]
            + keys.lines(replacing: mapKeys)
    }

    private func hasOtherMap(than previous: TimeShiftContext?) -> Bool {
        guard let previous else { return true }
        return previous !== self && (map != previous.map || !(mapKeys == previous.mapKeys))
    }
}
