import Glibc

/// Misses: distinct segments that must be fetched, and players that join a flight.
enum MissWorkloads {
    /// Connections, and the maximum number of segments requested over them.
    private static let loads = [(1, 60), (8, 100), (32, 128)]

    /// Distinct 2 MB segments not requested before, through the proxy and directly.
    static func cold(_ round: Round) throws {
        for (connections, most) in loads where round.needs("cold.c\(connections)") {
            let id = "cold.c\(connections)"
            let count = max(round.options.times(most), connections)
            let names = (0..<count).map { "\(round.salt)-\(connections)-\($0)" }
            let shape = LoadShape(
                requests: count, connections: connections,
                seconds: 2 * round.options.loadSeconds)
            let isOwn = round.proxy.name == Comparison.own
            var direct = 0.0
            if connections == 1 || isOwn {
                let paths = names.map { round.bench.object("direct-\($0)", 2 << 20) }
                let result = try sendLoad(paths, to: round.bench.origin.address, shape)
                direct = median(result.firstBytes)
                if isOwn {
                    round.addDirect("\(id).rate", Double(result.bytes) / result.seconds / 1e6)
                }
            }
            let (result, processor) = try round.measured(
                names.map { round.path($0, 2 << 20) }, shape)
            round.addTransfer(id, result, processor)
            guard connections == 1 else { continue }
            round.add("\(id).first", (median(result.firstBytes) - direct) * 1e3)
        }
    }

    /// Players that request what is already being fetched: the origin takes 200 ms and sends 1
    /// MB/s.
    static func join(_ round: Round) throws {
        let slow = "&fb=200&rate=1000000"
        let (late, size) = round.options.isQuick ? (0.3, 200_000) : (1.0, 2 << 20)
        if round.needs("join.late") {
            let path = round.path("late-\(round.salt)", size, slow)
            var second = TimedRequest(path)
            second.start = late
            let before = try round.bench.originNumber("requests")
            let answers = try TimedRequest.run(
                [TimedRequest(path), second], to: round.proxy.address)
            guard answers.allSatisfy(\.isWhole) else { throw BenchError("a joiner was cut") }
            round.add("join.late.first", answers[1].firstByte * 1e3)
            round.add(
                "join.late.requests", try round.bench.originNumber("requests") - before)
        }
        guard round.needs("join.herd") else { return }
        let path = round.path("herd-\(round.salt)", size / 2, slow)
        let before = try round.bench.originNumber("requests")
        let all = try TimedRequest.run(
            (0..<50).map { _ in TimedRequest(path) }, to: round.proxy.address)
        guard all.allSatisfy(\.isWhole) else { throw BenchError("one of the herd was cut") }
        let slowest = quantile(all.map(\.firstByte), 0.99)
        round.add("join.herd.first", max(0, slowest * 1e3 - 200))
        round.add("join.herd.requests", try round.bench.originNumber("requests") - before)
    }
}

/// Ranges of 64 MiB: the bytes fetched beyond them, and whether they are stored.
enum RangeWorkload {
    private static let size = 64 << 20

    private static func ask(
        _ round: Round, _ name: String, _ range: String?
    ) throws -> TimedRequest.Answer {
        var request = TimedRequest(round.path(name, size, "&fb=20"))
        request.range = range
        let answer = try TimedRequest.one(request, to: round.proxy.address, limit: 60)
        guard answer.isWhole else {
            throw BenchError("\(range ?? "the whole") came to \(answer.status), \(answer.bytes)")
        }
        return answer
    }

    static func run(_ round: Round) throws {
        let far = try ask(round, "far-\(round.salt)", "60000000-60000999")
        round.add("ranges.far.first", far.firstByte * 1e3)
        try round.bench.waitForOrigin()
        guard
            ["ranges.parts", "ranges.again", "ranges.whole"].contains(where: {
                round.needs($0)
            })
        else { return }
        let name = "parts-\(round.salt)"
        let middle = size / 2
        let start = try round.bench.originNumber("bytes")
        for range in ["0-999", "1000-50000", "500-600", "-1000", "\(middle)-\(middle + 1_023)"] {
            _ = try ask(round, name, range)
            try round.bench.waitForOrigin()
        }
        let asked = Double(50_001 + 1_000 + 1_024)
        let beyond = try round.bench.originNumber("bytes") - start - asked
        round.add("ranges.parts.beyond", max(0, beyond) / 1e6)
        let again = try ask(round, name, "\(middle + 100)-\(middle + 900)")
        round.add("ranges.again.first", again.firstByte * 1e3)
        _ = try ask(round, name, nil)
        try round.bench.waitForOrigin()
        let twice = try round.bench.originNumber("bytes") - start - Double(size)
        round.add("ranges.whole.twice", max(0, twice) / 1e6)
    }
}

/// The origin breaks once at half of 2 MB, in six ways.
enum FailureWorkload {
    static func run(_ round: Round) throws {
        let size = 2 << 20
        var whole = 0.0
        var passed = 0.0
        var kept = 0.0
        let start = try round.bench.originNumber("bytes")
        for end in ["trunc", "reset"] {
            for (kind, framing) in ["", "&chunked=1", "&eof=1"].enumerated() {
                let path = round.path(
                    "break-\(end)-\(kind)-\(round.salt)", size, "&\(end)=1000000&fails=1\(framing)")
                let first = try TimedRequest.one(TimedRequest(path), to: round.proxy.address)
                whole += first.isWhole && first.bytes == size ? 1 : 0
                passed += first.isWhole && first.bytes < size ? 1 : 0
                try round.bench.waitForOrigin()
                let second = try TimedRequest.one(TimedRequest(path), to: round.proxy.address)
                kept += second.isWhole && second.bytes < size ? 1 : 0
                try round.bench.waitForOrigin()
            }
        }
        let twice = try round.bench.originNumber("bytes") - start - Double(6 * size)
        round.add("failure.ways.whole", whole)
        round.add("failure.ways.passed", passed)
        round.add("failure.ways.kept", kept)
        round.add("failure.ways.twice", max(0, twice) / 1e6)
    }
}
