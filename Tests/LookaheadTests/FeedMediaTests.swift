import Lookahead
import Testing

/// The kinds of items, and their costs.
@Suite struct FeedMediaTests {
    private static let mp4: [UInt8] = [0, 0, 0, 24] + Array("ftypisom".utf8)

    @Test(
        arguments: [
            ("image/jpeg", [1, 2], FeedMedia.picture), ("IMAGE/WEBP; q=1", [], .picture),
            ("video/mp4", [1], .video), ("audio/mpeg", [1], .video),
            ("application/octet-stream", [0xFF, 0xD8, 0xFF, 0xE0], .picture),
            ("text/plain", [0x89, 0x50, 0x4E, 0x47], .picture), ("", mp4, .video),
            ("application/octet-stream", [0x47, 0x40, 0x11], .video),
            ("application/octet-stream", [0, 0, 0, 28] + Array("ftypavif".utf8), .picture),
            ("image/svg+xml", Array("<svg".utf8), .picture),
        ] as [(String, [UInt8], FeedMedia)])
    func `media is recognized by its bytes and its type`(
        type: String, prefix: [UInt8], media: FeedMedia
    ) {
        #expect(FeedMedia.of(contentType: type, prefix: prefix) == media)
    }

    @Test(arguments: [
        ("text/html", "<!doctype"), ("application/json", "{}"), ("", "sorry"),
        ("application/octet-stream", "<html>"), ("application/pdf", "%PDF"),
    ])
    func `a body that is not media is rejected`(type: String, text: String) {
        #expect(FeedMedia.of(contentType: type, prefix: Array(text.utf8)) == nil)
    }

    @Test func `the published scheme weighs a picture 1 and a video 2`() {
        var parameters = FeedParameters.published
        parameters.ahead = 20
        parameters.behind = 0
        var planner = FeedPlanner(
            contents: Array(0..<30), weights: Array(repeating: nil, count: 30), at: 0, .forward,
            parameters)
        #expect(planner.window.count == 5, "all may be videos")
        for content in 0..<30 { planner.isKind(content, .picture) }
        #expect(planner.window.count == 10)
        planner.isKind(0, .video)
        planner.isKind(1, .video)
        #expect(planner.window.count == 8)
    }

    @Test func `a weight in the order overrides that of the kind`() {
        var parameters = FeedParameters.published
        parameters.ahead = 20
        parameters.behind = 0
        let planner = FeedPlanner(
            contents: Array(0..<30), weights: Array(repeating: 5, count: 30), at: 0, .forward,
            parameters)
        #expect(planner.window.count == 2)
    }

    @Test func `a rejected item is requested again only after a while`() {
        var planner = FeedPlanner(contents: [0, 1], weights: [nil, nil], at: 0)
        #expect(planner.start(at: 0).contains(.read(content: 0)))
        var actions = planner.isRefused(0, "no media", at: 1)
        for second in 2..<50 {
            _ = planner.move(to: 1, at: Double(second))
            actions += planner.move(to: 0, at: Double(second))
        }
        #expect(!actions.contains(.read(content: 0)))
        _ = planner.move(to: 1, at: 62)
        #expect(planner.move(to: 0, at: 63).contains(.read(content: 0)))
        _ = planner.isRefused(0, "no media", at: 64)
        _ = planner.move(to: 1, at: 125)
        #expect(!planner.move(to: 0, at: 126).contains(.read(content: 0)))
    }
}
