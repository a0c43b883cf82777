import Numbers
import Testing

@Suite struct SortedSearchTests {
    @Test func `the first element that fulfils a condition is found at every place`() {
        for count in 0..<20 {
            let numbers = Array(0..<count)
            for limit in 0...count {
                #expect(numbers.firstSortedIndex { $0 >= limit } == limit)
                // A slice has indices of its own.
                #expect(numbers[(limit / 2)...].firstSortedIndex { $0 >= limit } == limit)
            }
        }
    }
}
