import Synchronization

/// A low-latency live stream (RFC 8216bis): growing segments divided into partial segments, with
/// blocking reloads, delta updates, preload hints and rendition reports; advanced by the clock or
/// by hand.
///
/// Under the prefix `/ll` it has `/ll/master.m3u8`, and for each rendition `/ll/<name>.m3u8`, its
/// segments `/ll/<name>/s<number>.ts` and, where parts are files, `/ll/<name>/s<number>.p<part>.ts`.
/// The segments of the media repeat, each time after an `EXT-X-DISCONTINUITY`.
package final class LowLatencyStream: Sendable {
    /// The stream's division into parts and the capabilities of its origin.
    package struct Settings: Sendable {
        /// Seconds.
        package var partDuration = 0.5
        package var partsPerSegment = 4
        /// Complete segments in the list.
        package var windowSize = 6
        /// Whether parts are byte ranges of their segment instead of separate files.
        package var partsAreRanges = false
        /// Whether the clock advances the stream; otherwise `advance(parts:)` and
        /// `advance(quarters:)` do.
        package var isClocked = false
        /// Whether reloads block; false answers immediately, like an origin that does not support
        /// delivery
        /// directives.
        package var blocks = true
        package var skips = true
        package var dated = false
        package var renditions = ["video"]
        /// Parts available at the start.
        package var firstParts = 8

        package init() {}
    }

    private struct State {
        /// Quarters produced so far: a part is produced in four steps, each a quarter of its bytes.
        var quarters: Int
        var isEnded = false
    }

    package let settings: Settings
    /// The bytes of the segments, repeated endlessly.
    private let media: @Sendable (Int) -> Content
    private let mediaCount: Int
    /// The offsets of the parts of each of the media; nil, or empty for all, where parts are cut at
    /// packets.
    private let cuts: [[Int]?]
    private let madeAt = Sockets.now()
    private let state: Mutex<State>

    /// A stream of these segments; `cutsAtFrames` if they are transport streams, which are read.
    init(_ segments: [Content], settings: Settings, cutsAtFrames: Bool = false) {
        precondition(!segments.isEmpty && settings.partsPerSegment > 0)
        self.settings = settings
        mediaCount = segments.count
        media = { segments[$0 % segments.count] }
        let read = cutsAtFrames ? segments : []
        cuts = read.map { content in
            TransportStreamParts.offsets(
                in: Array(ContentReader(content).read(0..<content.length)),
                count: settings.partsPerSegment)
        }
        state = Mutex(State(quarters: settings.firstParts * 4))
    }

    /// A stream of synthetic segments of `segmentBytes` each.
    package convenience init(segmentBytes: Int, settings: Settings = Settings()) {
        let segments = (0..<1_000).map { Content.synthetic(name: "ll\($0)", length: segmentBytes) }
        self.init(segments, settings: settings)
    }

    // MARK: Moving on

    package func advance(parts: Int = 1) { advance(quarters: parts * 4) }

    /// Produces the next quarters of parts.
    package func advance(quarters: Int) { state.withLock { $0.quarters += quarters } }

    /// Ends the stream at its current position; an incomplete part is dropped.
    package func end() {
        let quarters = produced
        state.withLock {
            $0.quarters = quarters / 4 * 4
            $0.isEnded = true
        }
    }

    var isEnded: Bool { state.withLock { $0.isEnded } }

    /// Quarters of parts produced so far.
    var produced: Int {
        let (made, isEnded) = state.withLock { ($0.quarters, $0.isEnded) }
        guard settings.isClocked, !isEnded else { return made }
        let quarter = settings.partDuration / 4 * 1e9
        return made + Int(Double(Sockets.now() - madeAt) / quarter)
    }

    /// The number of the segment being produced, and the index of its next part.
    package var position: (segment: Int, part: Int) {
        let parts = produced / 4
        return (parts / settings.partsPerSegment, parts % settings.partsPerSegment)
    }

    /// Seconds.
    var targetDuration: Int {
        max(1, Int((settings.partDuration * Double(settings.partsPerSegment)).rounded(.up)))
    }

    // MARK: Bytes

    /// A segment as far as it is produced; nil before its first byte and after its removal.
    func segment(_ number: Int) -> (content: Content, available: Int, isWhole: Bool)? {
        let made = produced - number * settings.partsPerSegment * 4
        guard number >= 0, made > 0, number >= firstNumber - 4 else { return nil }
        let content = media(number)
        let whole = settings.partsPerSegment * 4
        if made >= whole { return (content, content.length, true) }
        return (content, offset(ofQuarter: made, in: number), false)
    }

    /// The byte range of a part in its segment.
    func range(ofPart part: Int, in number: Int) -> Range<Int> {
        offset(ofQuarter: part * 4, in: number)..<offset(ofQuarter: part * 4 + 4, in: number)
    }

    /// The end of a quarter of a part: a multiple of the transport stream packet size.
    private func offset(ofQuarter quarter: Int, in number: Int) -> Int {
        let length = media(number).length
        let all = settings.partsPerSegment * 4
        guard quarter < all else { return length }
        guard !cuts.isEmpty, let offsets = cuts[number % mediaCount] else {
            return length * quarter / all / 188 * 188
        }
        let (start, end) = (offsets[quarter / 4], offsets[quarter / 4 + 1])
        return start + (end - start) * (quarter % 4) / 4 / 188 * 188
    }

    /// The bytes of a part, for comparison in tests.
    package func bytes(ofPart part: Int, in number: Int) -> [UInt8] {
        Array(ContentReader(media(number)).read(range(ofPart: part, in: number)))
    }

    /// The bytes of a whole segment.
    package func bytes(ofSegment number: Int) -> [UInt8] {
        let content = media(number)
        return Array(ContentReader(content).read(0..<content.length))
    }

    // MARK: Lists

    /// The number of the first segment in the list.
    var firstNumber: Int { max(0, position.segment - settings.windowSize) }

    /// Whether a segment restarts the media.
    func isDiscontinuous(_ number: Int) -> Bool { number > 0 && number % mediaCount == 0 }

    /// The number of discontinuities before a segment, its own excluded.
    func discontinuities(before number: Int) -> Int { number == 0 ? 0 : (number - 1) / mediaCount }
}
