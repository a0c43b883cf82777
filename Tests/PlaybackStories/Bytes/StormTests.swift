import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Random ranges, speeds, hang-ups, broken origins and a cache that holds a third of the content:
/// never a wrong byte.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct StormTests {
        /// The origin's changes to the objects of a storm, in order.
        private static let behaviours = [
            "fb=0", "chunked=1", "norange=1", "rate=4000000", "reset=400000&fails=4",
            "trunc=700000&chunked=1&fails=4", "chunked=1&norange=1", "cc=no-store",
            "status=503&fails=2", "eof=1", "reset=100000&fails=3&norange=1", "fb=50",
        ]

        @Test(arguments: [1, 2, 3] as [UInt64])
        func `random players get no wrong byte`(seed: UInt64) throws {
            let story = try Story(["--cache-size", "6MB", "--min-free", "0", "--slots", "6"])
            let paths = Self.behaviours.indices.map {
                segment("storm\($0)", 900_000 + $0 * 137_501)
            }
            for (path, behaviour) in zip(paths, Self.behaviours) {
                story.cdn.setBehaviour(Behaviour(query: behaviour), for: path)
            }
            let faults = try inParallel(16, within: .seconds(60)) { player in
                var dice = Dice(seed: seed &* 1000 &+ UInt64(player))
                return (0..<25).compactMap { _ in
                    let path = paths[dice.roll(paths.count)]
                    do { return try visit(story, path, &dice) } catch { return "\(path): \(error)" }
                }
            }
            try #require(story.daemon.isRunning, "\(story.daemon.standardError.suffix(3000))")
            #expect(faults.flatMap(\.self) == [])
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            #expect(try story.settled("stored_bytes") { $0 <= 6_000_000 } <= 6_000_000)
            #expect(try story.stat("own_errors_total") == 0)
        }

        /// One visit; returns what was wrong, if anything.
        private func visit(_ story: Story, _ path: String, _ dice: inout Dice) throws -> String? {
            let size = Int(path.split(separator: "/")[1]) ?? 0
            let first = dice.roll(size)
            let last = min(size - 1, first + dice.roll(400_000))
            let ranges = [nil, "bytes=\(first)-\(last)", "bytes=\(first)-", "bytes=-\(last + 1)"]
            let range = ranges[dice.roll(ranges.count)]
            let stream = try story.open(path, range: range)
            var what = "\(path) \(range ?? "whole")"
            let head = try stream.readHead()
            what = "\(path) \(range ?? "whole"): \(head.startLine)"
            guard head.status == 200 || head.status == 206 else {
                _ = try stream.readRest()
                return what
            }
            var start = 0
            if head.status == 206 {
                let field = head["Content-Range"] ?? ""
                start = Int(field.dropFirst(6).prefix { $0 != "-" }) ?? -1
                let asked = range == ranges[3] ? size - last - 1 : first
                guard range != nil, start == asked else { return "\(what) \(field)" }
            }
            let isPatient = dice.roll(3) > 0
            let body = isPatient ? try stream.readRest() : try stream.read(dice.roll(300_000) + 1)
            guard isContent(body, of: path, from: start, count: body.count) else {
                return "\(what): \(differences(body, of: path, from: start))"
            }
            guard isPatient, stream.broken == nil else {
                stream.abort()
                return stream.broken.map { "\(what): \($0) after \(body.count) from \(start)" }
            }
            let end = range == ranges[1] && head.status == 206 ? last + 1 : size
            return start + body.count == end ? nil : "\(what): \(body.count) bytes from \(start)"
        }
    }
}

/// The stretches of a body that are not what the origin sent, as offsets in the whole body.
private func differences(_ body: [UInt8], of path: String, from start: Int) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    let sent = FixtureCDN.syntheticBytes(name, start..<start + body.count)
    var ranges: [Range<Int>] = []
    for (index, (one, other)) in zip(body, sent).enumerated() where one != other {
        let offset = start + index
        if let last = ranges.last, offset - last.upperBound < 64 {
            ranges[ranges.count - 1] = last.lowerBound..<offset + 1
        } else {
            ranges.append(offset..<offset + 1)
        }
    }
    let told = ranges.prefix(8).map { range in
        let bytes = body[range.lowerBound - start..<range.upperBound - start]
        return "\(range)\(bytes.allSatisfy { $0 == 0 } ? " zeros" : "")"
    }
    return "\(ranges.count) stretches of \(body.count) wrong bytes: \(told)"
}

/// Numbers that are the same in every run of a seed (the SplitMix64 generator).
private struct Dice {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// A number in 0..<sides.
    mutating func roll(_ sides: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((word ^ (word >> 31)) % UInt64(sides))
    }
}
