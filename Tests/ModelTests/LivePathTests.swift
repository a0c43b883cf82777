@testable import Model
@testable import Serving
import DurableState
import FuzzSupport
import HLS
import Posix
import Routing
import Store
import Testing
import URISyntax

/// Paths in live lists over random sequences of lists: tokens and servers change, the window
/// slides, leaps and restarts, and delta updates omit its beginning.
@Suite struct `Paths in live lists` {
    /// A stream as its origin has it.
    private struct Stream {
        var first = 100
        var size = 6
        var era = 0
        /// The numbers at which another initialization section begins, with its file name.
        var sections: [(number: Int, name: String)] = [(0, "i0.mp4")]

        func section(at number: Int) -> (number: Int, name: String) {
            sections.last { $0.number <= number } ?? (0, "i0.mp4")
        }

        /// The list with a token in every URL, as a delta update where `skipped` is not 0.
        func text(_ token: String, isInPath: Bool, skipped: Int = 0) -> String {
            let uri = { (name: String) in isInPath ? "\(token)/\(name)" : "\(name)?t=\(token)" }
            var lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXT-X-MEDIA-SEQUENCE:\(first)"]
            if skipped > 0 { lines.append("#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)") }
            for number in (first + skipped)..<(first + size) {
                let section = section(at: number)
                if section.number == number || number == first {
                    lines.append("#EXT-X-MAP:URI=\"\(uri("e\(era)/" + section.name))\"")
                }
                for part in 0..<2 where number >= first + size - 2 {
                    lines.append("#EXT-X-PART:DURATION=1,URI=\"\(uri("p\(number).\(part).m4s"))\"")
                }
                lines += ["#EXTINF:2,", uri("s\(number).m4s")]
            }
            lines.append("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(uri("p\(first + size).0.m4s"))\"")
            return lines.joined(separator: "\n") + "\n"
        }
    }

    /// The memory of one list, and the paths that it gave.
    private struct Reader {
        private let list = ObjectKey(sha256Of: "list")
        private var epochs = EpochTable()
        private var generation: UInt64 = 0

        /// The links of a list: what each refers to, by the URL's file name, the tag and the
        /// number.
        mutating func read(
            _ text: String, from base: String, at seconds: Int64
        ) throws -> [(name: String, tag: HLS.Tag.Name, number: Int, link: String)] {
            let bytes = Array(text.utf8)
            let base = try AbsoluteURL(base)
            let reading = try #require(try LiveReading(bytes, base: base, options: .init()))
            let window = WindowNames(
                reading, known: epochs.knownNames(of: list, version: 0)
            ) { url, _ in ObjectKey(sha256Of: url.text) }
            generation += 1
            let now = WallTime(seconds: 1_800_000_000 + seconds)
            _ = epochs.take(
                reading, generation: generation, .init(requested: now, received: now),
                at: (list, window, 0))
            let known = try #require(epochs.lists[list])
            let names = LiveNames(
                list: (list.listName, known.epoch),
                sections: Dictionary(
                    known.sections.map { ($0.number, $0.name) }, uniquingKeysWith: { $1 }))
            let writer = LinkWriter(
                session: SessionID(1), prefix: "", signer: nil, userSigner: nil
            ) {
                Handle(session: $1, target: .url($0), epoch: $2)
            }
            var links: [(String, HLS.Tag.Name, Int, String)] = []
            _ = try PlaylistRewriter.rewrite(bytes, base: base) { reference, _ in
                guard let place = names.place(of: reference) else { return false }
                var link: [UInt8] = []
                writer.append(reference, at: place, of: names.list, in: .first, to: &link)
                links.append(
                    (
                        reference.url.lastPathSegment, reference.tag, reference.mediaSequence,
                        String(decoding: link, as: UTF8.self)
                    ))
                return false
            }
            return links
        }
    }

    @Test func `a segment has one path while the origin continues its numbering`() throws {
        var dice = SeededNumbers(seed: 1)
        for round in 0..<60 {
            var stream = Stream()
            var reader = Reader()
            var paths: [String: String] = [:]
            var seconds: Int64 = 0
            var readings = 0
            var history: [String] = []
            for turn in 0..<25 {
                let step = Int.random(in: 0..<12, using: &dice)
                seconds += 2
                switch step {
                case 0 where stream.first > 20:
                    // The encoder restarts, farther back than a stale cache could be.
                    stream.first = Int.random(in: 0...2, using: &dice)
                    stream.era += 1
                    stream.sections = [(0, "i\(stream.era)0.mp4")]
                    readings = 0
                case 1: stream.first += Int.random(in: 1..<stream.size, using: &dice)
                case 2:
                    stream.first += 1
                    let number = stream.first + stream.size - 1
                    stream.sections.append((number, "i\(stream.era)\(number).mp4"))
                case 3...8: stream.first += 1
                default: break
                }
                let isInPath = round % 2 == 0
                let isDelta = readings > 0 && Bool.random(using: &dice)
                let text = stream.text(
                    "tok\(turn)", isInPath: isInPath, skipped: isDelta ? 3 : 0)
                let host = round % 3 == 0 ? "edge\(turn % 3)" : "edge"
                history.append("\(text)")
                let links = try reader.read(text, from: "http://\(host)/l.m3u8", at: seconds)
                readings += 1
                for (name, tag, number, link) in links {
                    let path = String(link.prefix { $0 != "?" })
                    let section = stream.section(at: number).number
                    let what = tag == .map ? "section \(section)" : "\(name) \(number)"
                    let key = "era \(stream.era) \(what)"
                    let former = paths.updateValue(path, forKey: key) ?? path
                    #expect(former == path, "\(key)\n\(history.suffix(2).joined(separator: "\n"))")
                }
            }
            // No path has two meanings.
            #expect(Set(paths.values).count == paths.count)
        }
    }

    @Test func `a hint without an offset has the path of the range that it announces`() throws {
        let list = """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-MEDIA-SEQUENCE:11
            #EXT-X-PART:DURATION=2,URI="s11.mp4",BYTERANGE="9@0"
            #EXTINF:2,
            s11.mp4

            """
        let hint = "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"s12.mp4\""
        let part = "#EXT-X-PART:DURATION=1,URI=\"s12.mp4\",BYTERANGE=\"9@0\"\n"
        var reader = Reader()
        let announced = try reader.read(list + hint, from: "http://edge/l.m3u8", at: 0)
        let listed = try reader.read(
            list + part + hint + ",BYTERANGE-START=9", from: "http://edge/l.m3u8", at: 1)
        var paths: [String] = []
        for (name, _, _, link) in announced + listed where name == "s12.mp4" {
            paths.append(String(link.prefix { $0 != "?" }))
        }
        #expect(paths.count == 3 && Set(paths).count == 1, "\(paths)")
    }

    @Test func `initialization sections survive a restart`() throws {
        var list = EpochTable.List()
        list.epoch = Epoch(number: 7)
        (list.start, list.end) = (3, 9)
        list.dates = [8: 1_000]
        list.sections = [LiveSection(number: 3, name: 5), LiveSection(number: 8, name: .max)]
        for dates in [[8: 1_000], [:]] {
            list.dates = dates
            let record = list.record(of: ObjectKey(sha256Of: "list"))
            #expect(record.isValid && EpochTable.List(record) == list)
            #expect(LiveListRecord(StateRow(record.values)) == record)
        }
    }
}
