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
}
