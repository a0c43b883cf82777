// The names of one window of a live list with their keys; the next window has nearly the same.
package import HLS
package import Store
import URISyntax

/// Names in the order of their list, one as often as it stands there.
package struct WindowNames: Sendable {
    package private(set) var places: [ResourceReference.Place] = []
    package private(set) var keys: [ObjectKey] = []
    /// Of each name's URL.
    private var digests: [UInt32] = []

    init() {}

    /// The names of a reading.
    ///
    /// - Parameters:
    ///   - reading: what the list says.
    ///   - known: the window before.
    ///   - key: makes the key of a name that was not in that.
    init(
        _ reading: LiveReading, known: WindowNames,
        key: (AbsoluteURL, ResourceRole) -> ObjectKey
    ) {
        places.reserveCapacity(reading.names.count)
        keys.reserveCapacity(reading.names.count)
        digests.reserveCapacity(reading.names.count)
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
    }

    private mutating func add(
        _ place: ResourceReference.Place, _ key: ObjectKey, _ digest: UInt32
    ) {
        places.append(place)
        keys.append(key)
        digests.append(digest)
    }

    /// Finds the names of one window in another, which it slides over.
    package struct Search {
        private let names: WindowNames
        /// Behind what was found last.
        private var next = 0
        /// How many names were looked at and were not the ones.
        package private(set) var misses = 0
        /// How many names are looked at: enough to find by how much the window slid, and for a few
        /// names that are new; not for all of them being new.
        private let most: Int

        init(in names: WindowNames) {
            self.names = names
            most = 8 * names.keys.count + 1_024
        }

        /// Where a name stands; nil where it stands nowhere or the search went on for too long.
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
