extension Array {
    /// Returns the index of the first element that does not precede what is sought; the number of
    /// elements if all do.
    ///
    /// Those that precede it come before all others.
    func binarySearch(_ precedes: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
