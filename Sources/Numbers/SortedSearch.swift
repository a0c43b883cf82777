extension RandomAccessCollection {
    /// Returns the index of the first element that fulfils a condition, found by binary search.
    ///
    /// - Parameter isPast: false up to some element, and true from there on.
    /// - Returns: `endIndex` if no element fulfils it.
    @inlinable
    package func firstSortedIndex(where isPast: (Element) -> Bool) -> Index {
        var low = startIndex
        var count = self.count
        while count > 0 {
            let middle = index(low, offsetBy: count / 2)
            if isPast(self[middle]) {
                count /= 2
            } else {
                low = index(after: middle)
                count -= count / 2 + 1
            }
        }
        return low
    }
}
