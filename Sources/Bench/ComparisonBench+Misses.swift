/// Workloads that go to the origin: cold segments, joiners, ranges, origins that break.
import Glibc
import Posix

extension ComparisonBench {
    private static let coldLoads = [(1, 100), (8, 250), (32, 300)]

    private func coldPaths(_ name: String, _ connections: Int, _ repetition: Int) -> [String] {
        let count = Self.coldLoads.first { $0.0 == connections }?.1 ?? 100
        return (0..<options.times(count)).map {
            object("cold-\(name)-\(repetition)-\(connections)-\($0)", 2 << 20)
        }
    }

    /// What the origin itself takes for the first byte.
    func coldDirect(_ figures: inout Figures, _ repetition: Int) throws {
        figures.name = "direct"
        let paths = coldPaths("direct", 1, repetition)
        let result = try load(origin.address, paths, paths.count, connections: 1)
        figures.add(
            "2 MB miss, 1 connections: first byte", median(result.firstBytes) * 1e3, "ms")
    }

    /// Distinct 2 MB segments that nobody has asked for yet.
    func cold(_ proxy: ProxyUnderTest, _ figures: inout Figures, _ repetition: Int) throws {
        for (connections, _) in Self.coldLoads {
            let paths = coldPaths(proxy.name, connections, repetition).map(proxy.path)
            let before = proxy.processorSeconds
            let result = try load(proxy.address, paths, paths.count, connections: connections)
            let seconds = proxy.processorSeconds - before
            let name = "2 MB miss, \(connections) connections"
            figures.add("\(name): CPU", seconds / Double(result.bytes) * 1e9, "s/GB")
            figures.add(
                "\(name): rate", Double(result.bytes) / result.seconds / 1e6, "MB/s", more: true)
            guard connections == 1 else { continue }
            figures.add("\(name): first byte", median(result.firstBytes) * 1e3, "ms")
        }
    }

    /// Players that ask for what is on its way: the origin takes 200 ms and sends 1 MB/s.
    func join(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        let slow = "&fb=200&rate=1000000"
        let salt = Int.random(in: 0..<1 << 40)
        let path = proxy.path(object("join-\(salt)", 2 << 20, slow))
        var second = TimedRequest(path)
        second.start = 1
        let before = try originNumber("requests")
        let answers = try TimedRequest.run([TimedRequest(path), second], to: proxy.address)
        guard answers.allSatisfy(\.isWhole) else { throw BenchError("a joiner's body was cut") }
        figures.add("a second player 1 s later: first byte", answers[1].firstByte * 1e3, "ms")
        figures.add(
            "a second player 1 s later: origin requests", try originNumber("requests") - before, "")
        let herd = proxy.path(object("herd-\(salt)", 1 << 20, slow))
        let asked = try originNumber("requests")
        let all = try TimedRequest.run(
            (0..<50).map { _ in TimedRequest(herd) }, to: proxy.address)
        let slowest = quantile(all.map(\.firstByte), 0.99)
        figures.add(
            "50 players at once: 99 % of first bytes, over the origin's", slowest * 1e3 - 200, "ms")
        figures.add(
            "50 players at once: origin requests", try originNumber("requests") - asked, "")
    }

    /// Parts of 64 MiB: what is fetched beyond them, and what is kept of them.
    func ranges(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        let size = 64 << 20
        let salt = Int.random(in: 0..<1 << 40)
        let path = proxy.path(object("ranges-\(salt)", size, "&fb=20"))
        let middle = size / 2
        let wanted = [
            "0-999", "1000-50000", "500-600", "-1000", "\(middle)-\(middle + 1_023)",
        ]
        let start = try originNumber("bytes")
        for range in wanted {
            var request = TimedRequest(path)
            request.range = range
            let answer = try TimedRequest.one(request, to: proxy.address)
            guard answer.isWhole else { throw BenchError("range \(range) came to \(answer)") }
            try waitForOrigin()
        }
        let asked = Double(50_001 + 1_000 + 1_024)
        let beyond = try originNumber("bytes") - start - asked
        figures.add("five ranges: bytes from the origin beyond them", max(0, beyond) / 1e6, "MB")
        var again = TimedRequest(path)
        again.range = "\(middle + 100)-\(middle + 900)"
        let cached = try TimedRequest.one(again, to: proxy.address)
        figures.add("a stored part again: first byte", cached.firstByte * 1e3, "ms")
        guard try TimedRequest.one(TimedRequest(path), to: proxy.address, limit: 60).isWhole else {
            throw BenchError("the whole was cut")
        }
        try waitForOrigin()
        let twice = try originNumber("bytes") - start - Double(size)
        figures.add("then the whole: bytes from the origin twice", max(0, twice) / 1e6, "MB")
    }

    /// The origin breaks once at half of 2 MB, in six ways.
    func failure(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        let size = 2 << 20
        var whole = 0.0
        var asWhole = 0.0
        var poisoned = 0.0
        let start = try originNumber("bytes")
        for (index, end) in ["trunc", "reset"].enumerated() {
            for (kind, framing) in ["", "&chunked=1", "&eof=1"].enumerated() {
                let name = "break-\(index)-\(kind)-\(Int.random(in: 0..<1 << 40))"
                let fault = "&\(end)=1000000&fails=1\(framing)"
                let path = proxy.path(object(name, size, fault))
                let first = try TimedRequest.one(TimedRequest(path), to: proxy.address)
                whole += first.isWhole && first.bytes == size ? 1 : 0
                asWhole += first.isWhole && first.bytes < size ? 1 : 0
                try waitForOrigin()
                let second = try TimedRequest.one(TimedRequest(path), to: proxy.address)
                poisoned += second.isWhole && second.bytes < size ? 1 : 0
                try waitForOrigin()
            }
        }
        let wasted = try originNumber("bytes") - start - Double(6 * size)
        figures.add("origin breaks, of 6 ways: player has the whole", whole, "", more: true)
        figures.add("origin breaks, of 6 ways: a cut body passed as whole", asWhole, "")
        figures.add("origin breaks, of 6 ways: a cut body kept as whole", poisoned, "")
        figures.add("origin breaks, of 6 ways: bytes fetched twice", max(0, wasted) / 1e6, "MB")
    }
}
