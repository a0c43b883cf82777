/// The latest pin or unpin of each title: an older one that reaches the store later is passed over.
///
/// Each change is written by itself and is tried again until the store has it, so that an unpin may
/// be in the bucket before the pin that it undoes.
package struct LatestPins {
    private let most: Int
    /// The names of changes, which sort by time.
    private var latest: [String: String] = [:]

    /// Remembers at least half as many titles as `most`.
    package init(most: Int) { self.most = most }

    /// Notes a change.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - title: the title that it pins or unpins.
    /// - Returns: false if a later one of the title is known, so that it changes nothing any more.
    package mutating func note(_ name: String, of title: String) -> Bool {
        if let known = latest[title], known > name { return false }
        latest[title] = name
        if latest.count > most {
            let kept = latest.sorted { $0.value > $1.value }.prefix(most / 2)
            latest = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
        }
        return true
    }
}
