import HLS
import Testing
import URISyntax

@testable import TimeShifting

/// The keys and initialization sections that were requested for a longer window.
@Suite struct RequestedStructureTests {
    @Test func `rotated keys are forgotten with the segments that needed them`() throws {
        let base = try AbsoluteURL("http://h/l.m3u8")
        var shift = TimeShift()
        var requested = RequestedStructure()
        var added = 0
        for number in 0..<10_000 {
            let text = """
                #EXTM3U
                #EXT-X-TARGETDURATION:2
                #EXT-X-MEDIA-SEQUENCE:\(number)
                #EXT-X-KEY:METHOD=AES-128,URI="\(number).key"
                #EXTINF:2,
                \(number).ts

                """
            _ = try shift.merge(Array(text.utf8), base: base)
            shift.trim(to: .seconds(20))
            for segment in shift.segments { added += requested.add(needsOf: segment).count }
            requested.trim(to: shift)
        }
        #expect(shift.segments.count == 10 && added == 10_000)
        #expect(requested.count <= 64)
    }

    /// A window of two segments under a key, whose URL is as long as a line.
    private static func window(from number: Int, key: String) -> [UInt8] {
        let name = key + String(repeating: "k", count: 60_000)
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-MEDIA-SEQUENCE:\(number)
            #EXT-X-KEY:METHOD=AES-128,IV=0x1,URI="\(name)"
            #EXTINF:2,
            \(number).ts
            #EXTINF:2,
            \(number + 1).ts

            """
        return Array(text.utf8)
    }

    @Test func `segments under one key, also of later windows, share their structure`() throws {
        let base = try AbsoluteURL("http://h/l.m3u8")
        var shift = TimeShift()
        for number in 0..<3 {
            _ = try shift.merge(Self.window(from: number, key: "a"), base: base)
        }
        _ = try shift.merge(Self.window(from: 4, key: "b"), base: base)
        let structures = shift.segments.map(\.structure)
        #expect(structures.count == 6)
        #expect(Set(structures[..<4]).count == 1 && Set(structures[4...]).count == 1)
        #expect(structures[0] != structures[4])
    }

    @Test func `a key that segments share is requested once, and again after a failure`() throws {
        let base = try AbsoluteURL("http://h/l.m3u8")
        var shift = TimeShift()
        var requested = RequestedStructure()
        _ = try shift.merge(Self.window(from: 0, key: "a"), base: base)
        let added = shift.segments.map { requested.add(needsOf: $0) }
        #expect(added.map(\.count) == [1, 0])
        let key = try #require(added.first?.first)
        requested.remove(key)
        #expect(requested.add(needsOf: shift.segments[1]) == [key])
        #expect(requested.add(needsOf: shift.segments[0]).isEmpty && requested.count == 1)
    }
}
