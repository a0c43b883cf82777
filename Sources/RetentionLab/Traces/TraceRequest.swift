// One line of a trace: what a player asked for, or what was fetched ahead for it.
package import Retention

/// A request as far as retention is concerned.
package struct TraceRequest: Sendable, Equatable {
    /// In seconds since 1970.
    package var time: UInt32
    package var name: UInt128
    /// The whole object's size, in bytes.
    package var size: Int64
    /// What the player read of it, in bytes.
    package var length: Int64
    /// The title it belongs to; 0 for none.
    package var title: UInt64
    package var kind: RetentionKind
    /// True for a fetch that nobody asked for yet; it counts as neither hit nor miss.
    package var isAhead: Bool

    package init(
        time: UInt32, name: UInt128, size: Int64, title: UInt64 = 0, kind: RetentionKind = .media
    ) {
        self.time = time
        self.name = name
        self.size = size
        self.length = size
        self.title = title
        self.kind = kind
        self.isAhead = false
    }
}

/// Requests of several viewers on their way to one trace in the order of time.
struct TraceBuilder {
    private var requests: [(milliseconds: UInt64, request: TraceRequest)] = []

    /// Adds a request at a time in seconds since the trace's start.
    mutating func add(
        _ part: TracePart, of title: UInt64, at seconds: Double, isAhead: Bool = false
    ) {
        let milliseconds = UInt64(max(0, seconds) * 1000)
        var request = TraceRequest(
            time: Self.start + UInt32(milliseconds / 1000),
            name: UInt128(title.scrambled) << 64 | UInt128((title ^ part.index << 20).scrambled),
            size: part.size, title: title, kind: part.kind)
        request.isAhead = isAhead
        requests.append((milliseconds, request))
    }

    /// The trace; requests of the same millisecond stay in the order they were added in.
    consuming func finish() -> [TraceRequest] {
        let order = requests.indices.sorted {
            (requests[$0].milliseconds, $0) < (requests[$1].milliseconds, $1)
        }
        return order.map { requests[$0].request }
    }

    /// 1 January 2026.
    static let start: UInt32 = 1_767_225_600
}

/// Which part of a title a request is for.
struct TracePart {
    var index: UInt64
    var size: Int64
    var kind: RetentionKind

    static let multivariantPlaylist = TracePart(index: 1, size: 1_500, kind: .structure)
    static let initSection = TracePart(index: 3, size: 1_200, kind: .structure)

    /// A media playlist: some 40 bytes a segment.
    static func mediaPlaylist(segments: Int) -> TracePart {
        TracePart(index: 2, size: Int64(300 + 40 * segments), kind: .structure)
    }

    /// A segment of a title; its size varies by a quarter around the title's rate.
    static func segment(
        _ number: Int, of title: UInt64, bytes: Double, kind: RetentionKind = .media
    ) -> TracePart {
        let index = UInt64(number) + 16
        let share = Double((title ^ index << 40).scrambled >> 11) * 0x1p-53
        return TracePart(index: index, size: Int64(bytes * (0.75 + share / 2)), kind: kind)
    }
}

extension UInt64 {
    /// Spreads numbers that were counted up over all bits.
    var scrambled: UInt64 {
        var random = TraceRandom(seed: self)
        return random.next()
    }
}
