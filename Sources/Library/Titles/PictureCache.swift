// The pictures of titles that were made recently.
import Numbers
import Posix
import Routing
import Store

/// The stored bytes that a picture was made of.
struct PictureSourceName: Hashable, Sendable {
    let key: ObjectKey
    let generation: UInt64
    /// The first byte of its range in the object.
    let start: Int64
}

/// A result of making a picture.
enum PictureResult: Sendable, Equatable {
    /// A JPEG file.
    case picture([UInt8])
    /// Why there is none.
    case none(String)

    var bytes: Int { if case .picture(let bytes) = self { bytes.count } else { 0 } }
}

/// At most so many pictures and so many bytes, least recently used first out.
struct PictureCache: Sendable {
    private struct Entry: Sendable {
        let source: PictureSourceName
        let result: PictureResult
        let made: Monotonic
        var lastUsed: UInt64
    }

    /// How long a failure is valid: a machine may have been too busy.
    private static let failureLife = Interval.seconds(60 as Int64)

    private let mostEntries: Int
    private let mostBytes: Int
    private var entries: [SessionID: Entry] = [:]
    private var uses: UInt64 = 0
    private(set) var bytes = 0
    var count: Int { entries.count }

    init(mostEntries: Int, mostBytes: Int) {
        self.mostEntries = mostEntries
        self.mostBytes = mostBytes
    }

    /// Returns the result for a title if it was made of the same bytes, and a failure only if it
    /// is recent.
    mutating func result(
        for title: SessionID, of source: PictureSourceName, now: Monotonic
    ) -> PictureResult? {
        guard let entry = entries[title], entry.source == source else { return nil }
        if case .none = entry.result, now - entry.made >= Self.failureLife { return nil }
        uses += 1
        entries[title]?.lastUsed = uses
        return entry.result
    }

    /// Keeps a result, and drops the least recently used others until the limits are met; takes
    /// time linear in the number of entries for each that is dropped.
    mutating func keep(
        _ result: PictureResult, for title: SessionID, of source: PictureSourceName, now: Monotonic
    ) {
        remove(title)
        guard result.bytes <= mostBytes else { return }
        uses += 1
        entries[title] = Entry(source: source, result: result, made: now, lastUsed: uses)
        bytes += result.bytes
        while entries.count > mostEntries || bytes > mostBytes {
            guard let oldest = entries.min(by: { $0.value.lastUsed < $1.value.lastUsed }) else {
                return
            }
            remove(oldest.key)
        }
    }

    mutating func remove(_ title: SessionID) {
        bytes -= entries.removeValue(forKey: title)?.result.bytes ?? 0
    }
}
