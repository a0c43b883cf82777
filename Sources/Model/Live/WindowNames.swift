// The names of one window of a live list with their keys; consecutive windows share most names.
package import HLS
package import Store
import URISyntax

/// The names of a window in list order, repeated as often as they are listed.
package struct WindowNames: Sendable {
    package private(set) var places: [ResourceReference.Place] = []
    package private(set) var keys: [ObjectKey] = []
    /// The media sequence numbers of the last segments that need them.
    ///
    /// For initialization sections and keys, that may be a later segment than the one that lists
    /// them. Nil for parts, which a list stops showing long before their segment leaves it. Empty
    /// for lists without delta updates.
    private(set) var lastNumbers: [Int?] = []
    /// Digests of the names' URLs.
    private var digests: [UInt32] = []
    /// The estimated memory of a window in bytes, with what `LivePlaces` and `LiveMemory` keep of
    /// it, its text included.
    private(set) var byteCount = 0

    /// The estimated memory of a window without its text and names, in bytes.
    private static let overhead = 1_024
    /// The estimated memory of one name in bytes, with its date but without its URL: measured, 250
    /// for a list without dates.
    private static let bytesOfName = 320

    init() {}

    /// Makes the names of a reading.
    ///
    /// - Parameters:
    ///   - reading: the content of the list.
    ///   - known: the window before.
    ///   - key: makes the key of a name that the window before lacked.
    init(
        _ reading: LiveReading, known: WindowNames,
        key: (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        places.reserveCapacity(reading.names.count)
        keys.reserveCapacity(reading.names.count)
        digests.reserveCapacity(reading.names.count)
        byteCount =
            Self.overhead + reading.textByteCount + Self.bytesOfName * reading.names.count
        var search = Search(in: known)
        var made: [AbsoluteURL: ObjectKey] = [:]
        for name in reading.names {
            let digest = name.place.tailDigest
            if let index = search.find(name.place, digest) {
                add(name.place, known.keys[index], digest)
            } else {
                let url = name.place.url
                let key = made[url] ?? key(url, name.role)
                made[url] = key
                add(name.place, key, digest)
            }
        }
        if reading.summary.canSkipUntil != nil || reading.summary.isSkipDelta {
            lastNumbers = reading.names.map(Self.lastNumber)
        }
    }

    private static func lastNumber(_ name: LiveReading.Name) -> Int? {
        switch name.role {
        case .part: nil
        case .initialization, .key: Int.max
        default: name.sequence
        }
    }

    private mutating func add(
        _ place: ResourceReference.Place, _ key: ObjectKey, _ digest: UInt32
    ) {
        places.append(place)
        keys.append(key)
        digests.append(digest)
        // Its folder, which the following names share, has a copy.
        if case .whole(let url) = place { byteCount += 2 * url.bytes.count }
    }

    /// Finds the names of one window in the preceding one.
    package struct Search {
        private let names: WindowNames
        /// The index after the last name found.
        private var next = 0
        /// How many names were compared without a match.
        package private(set) var misses = 0
        /// The limit of comparisons: enough to find how far the window slid and for a few new
        /// names, but not for a window of new names only.
        private let most: Int

        init(in names: WindowNames) {
            self.names = names
            most = 8 * names.keys.count + 1_024
        }

        /// Returns the index of a name; nil if it is absent or the limit of comparisons is reached.
        package mutating func find(_ place: ResourceReference.Place, _ digest: UInt32) -> Int? {
            let found =
                find(place, digest, in: next..<names.digests.count)
                ?? find(place, digest, in: 0..<next)
            if let found { next = found + 1 }
            return found
        }

        private mutating func find(
            _ place: ResourceReference.Place, _ digest: UInt32, in range: Range<Int>
        ) -> Int? {
            for index in range.prefix(most - misses) {
                if names.digests[index] == digest, names.places[index].isSame(as: place) {
                    return index
                }
                misses += 1
            }
            return nil
        }
    }
}
