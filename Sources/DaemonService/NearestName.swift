/// Finds the name that a misspelt one was probably meant to be.
package enum NearestName {
    /// Returns the shortest name that the text begins, else the one with the smallest edit distance,
    /// if that is small enough for a slip.
    ///
    /// - Parameters:
    ///   - text: the name as it was written.
    ///   - names: the names that there are.
    ///   - prefix: what all of them begin with, which says nothing of what was meant.
    /// - Returns: nil if no name is near.
    package static func of(
        _ text: String, among names: some Collection<String>, prefix: String = ""
    ) -> String? {
        // Longer texts are not slips, and comparing them would take long.
        guard text.utf8.count <= 64 else { return nil }
        let count = text.utf8.count - prefix.utf8.count
        // `cache` is rather a part of `cache-dir` than a slip for `pace`.
        let begun = names.filter { count > 1 && $0.hasPrefix(text) }
        if let name = begun.min(by: { ($0.utf8.count, $0) < ($1.utf8.count, $1) }) { return name }
        let found = names.map { ($0, distance(text, $0)) }.min { ($0.1, $0.0) < ($1.1, $1.0) }
        guard let (name, changes) = found, changes <= max(1, min(3, count / 2)) else { return nil }
        return name
    }

    /// Returns the number of letters to insert, delete or replace (Levenshtein).
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right.utf8)
        var row = Array(0...right.count)
        for (index, letter) in left.utf8.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in right.indices {
                let replaced = diagonal + (letter == right[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
