import Testing

@testable import Model

/// The URLs that are known to have delivered a version of an object.
@Suite struct KeySourcesTests {
    @Test func `the latest URLs are known, however often each has delivered the version`() {
        var sources = KeySources()
        let most = UInt64(KeySources.most)
        for source in 1...most { sources.add(source) }
        // The first one delivers once more, so that the second one is the oldest.
        for _ in 0..<20 { sources.add(1) }
        sources.add(most + 1)
        let known = (1...most + 2).filter { sources.contains($0) }
        #expect(known == [1] + Array(3...most + 1))
    }
}
