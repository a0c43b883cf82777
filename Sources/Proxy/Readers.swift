/// Who reads what, so that a flight knows when nobody wants its bytes any more.
import Synchronization

/// The readers of all objects, by generation, since a descriptor may outlive the object's place in
/// the store.
///
/// Any thread may use it.
final class Readers: Sendable {
    /// What one reader still wants.
    private struct Interest {
        var position: Int64
        /// Exclusive; nil for the end of the body.
        let end: Int64?
    }

    /// Names one reader.
    struct ID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// A reader tells of its progress in steps of this many bytes.
    static let step: Int64 = 256 << 10

    private let interests = Mutex<[UInt64: [ID: Interest]]>([:])
    private let last = Atomic<UInt64>(0)

    /// One reader more.
    func enter(_ generation: UInt64, from start: Int64, to end: Int64?) -> ID {
        let id = ID(number: last.add(1, ordering: .relaxed).newValue)
        interests.withLock {
            $0[generation, default: [:]][id] = Interest(position: start, end: end)
        }
        return id
    }

    /// A reader has come this far.
    func move(_ id: ID, of generation: UInt64, to position: Int64) {
        interests.withLock { $0[generation]?[id]?.position = position }
    }

    /// One reader less.
    func leave(_ id: ID, of generation: UInt64) {
        interests.withLock { interests in
            interests[generation]?[id] = nil
            if interests[generation]?.isEmpty == true { interests[generation] = nil }
        }
    }

    /// The number of readers now.
    func count(_ generation: UInt64) -> Int {
        interests.withLock { $0[generation]?.count ?? 0 }
    }

    /// Whether any reader wants bytes from `watermark` on and is not so far ahead of it that it
    /// gets a flight of its own.
    func isWanted(_ generation: UInt64, at watermark: Int64, within distance: Int64) -> Bool {
        interests.withLock { interests in
            interests[generation]?.values.contains { reader in
                (reader.end.map { $0 > watermark } ?? true)
                    && reader.position <= watermark + distance
            } ?? false
        }
    }
}
