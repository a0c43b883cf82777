import HLS
import Testing

@testable import TimeShifting

/// The pace at which a followed list is reloaded.
@Suite struct FollowerTargetTests {
    @Test(
        arguments: [
            ("#EXT-X-TARGETDURATION:6\n", .seconds(6)),
            ("#EXT-X-TARGETDURATION:60\n", .seconds(60)),
            ("#EXT-X-TARGETDURATION:3600\n", .seconds(2)), ("", nil),
        ] as [(String, Duration?)])
    func `a target duration that is taken for a mistake gives way to that of the segments`(
        tag: String, target: Duration?
    ) throws {
        let text = "#EXTM3U\n\(tag)#EXTINF:1,\na\n#EXTINF:3,\nb\n"
        let summary = try Playlist(Array(text.utf8), base: nil).summary
        #expect(TimeShiftFollower.target(of: summary) == target)
    }
}
