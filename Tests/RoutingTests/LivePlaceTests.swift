import HLS
import HTTP
import Routing
import Testing
import URISyntax

/// The paths of links in live lists, the place that each names, and the URL in the query.
@Suite struct LivePlaceTests {
    private static let session = SessionID(0xABCDEF)

    private func text(_ place: LivePlace) -> String {
        var output: [UInt8] = []
        place.append(to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    @Test func `every place has one spelling, which is parsed as the same place`() {
        let cases: [(LivePlace, String, ResourceRole)] = [
            (.segment(0), "0", .segment), (.segment(1 << 53), "9007199254740992", .subtitle),
            (.part(1_204, index: 10), "1204-10", .part),
            (.section(0x2A), "init-0000002a", .initialization),
            (.section(.max), "init-ffffffff", .initialization),
        ]
        for (place, spelling, role) in cases {
            #expect(text(place) == spelling)
            #expect(LivePlace(fileName: spelling + ".m4s", role: role) == place)
        }
        let others: [(String, ResourceRole)] = [
            ("", .segment), (".ts", .segment), ("7", .segment), ("07.ts", .segment),
            ("+7.ts", .segment), ("-7.ts", .segment), ("7-.ts", .part), ("7-x.ts", .part),
            ("9223372036854775807.ts", .segment), ("9223372036854775808.ts", .segment),
            ("99999999999999999999999.ts", .segment),
            ("init-2a.mp4", .initialization), ("init-0000002A.mp4", .initialization),
            ("7.mp4", .initialization), ("seg7.ts", .segment), ("7.1.ts", .segment),
        ]
        for (name, role) in others {
            #expect(LivePlace(fileName: name, role: role) == nil, "\(name)")
        }
    }

    @Test func `a handle of a list is parsed as written`() throws {
        for epoch in [Epoch.first, Epoch(number: 1_800_000_000)] {
            var output: [UInt8] = []
            Handle(session: Self.session, target: .list(0x8000_0000_0000_0001), epoch: epoch)
                .append(to: &output, for: .link(.segment))
            let read = try Handle(text: output)
            #expect(read.target == .list(0x8000_0000_0000_0001) && read.epoch == epoch)
        }
    }

    @Test func `only the handle in the query gives the URL`() throws {
        func handle(_ target: Handle.Target, _ session: SessionID = Self.session) -> String {
            var output: [UInt8] = []
            Handle(session: session, target: target).append(to: &output, for: .link(.segment))
            return String(decoding: output, as: UTF8.self)
        }
        let list = handle(.list(7))
        let target = Handle.Target.url(try AbsoluteURL("http://h/a.ts?token=1"))
        func unchecked(_ path: String) -> Handle.Target? {
            let head = RequestHead(method: .get, target: path)
            guard case .rewritten(let link) = Router(mounts: []).route(head) else { return nil }
            return link.unchecked?.target
        }
        #expect(unchecked("/s/\(list)/12.ts?u=\(handle(target))") == target)
        #expect(unchecked("/s/\(list)/12.ts?x=1&u=\(handle(target))&_t=9#f") == target)
        #expect(unchecked("/s/\(list)/12.ts") == .list(7))
        #expect(unchecked("/s/\(list)/12.ts?u=") == nil)
        // A handle of another session, or behind a link that needs none.
        #expect(unchecked("/s/\(list)/12.ts?u=\(handle(target, SessionID(1)))") == nil)
        #expect(unchecked("/s/\(handle(target))/a.ts?u=\(handle(.list(7)))") == target)
    }
}

@Suite struct EpochOrderTests {
    @Test(arguments: [0, 1, 1_800_000_000, UInt32.max - 1, .max])
    func `a new epoch differs from the previous and the first one`(number: UInt32) {
        for seconds in [Int64.min, 0, 1_800_000_000, .max] {
            let next = Epoch.beginning(at: seconds, after: Epoch(number: number))
            #expect(next != .first && next.number != number)
        }
    }
}
