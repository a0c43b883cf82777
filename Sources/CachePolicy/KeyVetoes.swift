/// Hosts whose URLs are no longer merged, because merged ones were found to differ.
package struct KeyVetoes: Sendable {
    /// The reason why the URLs of a host are not merged.
    package enum Reason: String, Sendable, CaseIterable {
        /// A merged URL was answered with `no-store`: the response may be for one viewer only.
        case noStore = "no-store"
        /// Two URLs with one key had different strong validators.
        case validator
        /// Two URLs with one key had different lengths.
        case length
        /// Two URLs with one key had different bytes.
        case content
    }

    /// The resources that a veto applies to.
    ///
    /// Playlists are judged separately from the media they name: playlists that differ between
    /// viewers say nothing about segments, which all viewers share.
    package enum Scope: String, Sendable, CaseIterable {
        case playlists
        case media
    }

    package struct Place: Hashable, Sendable {
        /// Scheme, host and port.
        package let origin: String
        package let scope: Scope

        package init(origin: String, scope: Scope) {
            self.origin = origin
            self.scope = scope
        }
    }

    private static let most = 1_024
    private var reasons: [Place: Reason] = [:]

    package init() {}

    /// Returns the reason why a place is barred; nil if it is not.
    package subscript(place: Place) -> Reason? { reasons[place] }

    /// Bars a place.
    ///
    /// - Returns: false if it was already barred, or the table is full.
    package mutating func add(_ reason: Reason, _ place: Place) -> Bool {
        guard reasons[place] == nil, reasons.count < Self.most else { return false }
        reasons[place] = reason
        return true
    }

    /// Removes the vetoes of an origin.
    package mutating func forget(_ origin: String) {
        for scope in Scope.allCases { reasons[Place(origin: origin, scope: scope)] = nil }
    }

    /// All vetoes, sorted.
    package var all: [(place: Place, reason: Reason)] {
        reasons.sorted {
            ($0.key.origin, $0.key.scope.rawValue) < ($1.key.origin, $1.key.scope.rawValue)
        }
        .map { ($0.key, $0.value) }
    }
}
