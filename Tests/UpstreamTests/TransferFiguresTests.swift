// Times of requests, their histograms and the table of origins, without a network.
import HTTP
import Testing
import URISyntax
@testable import Upstream

@Suite struct `Times of a request to an origin` {
    private static func marks(
        slot: Int64 = 0, name: Int64 = 0, connect: Int64 = 0, tls: Int64 = 0, sending: Int64 = 0,
        firstByte: Int64 = 0, end: Int64 = 0
    ) -> HopTimes.Marks {
        var marks = HopTimes.Marks()
        marks.slot = slot
        marks.name = name
        marks.connect = connect
        marks.tls = tls
        marks.sending = sending
        marks.firstByte = firstByte
        marks.end = end
        return marks
    }

    private static func phases(_ marks: HopTimes.Marks, isNew: Bool = true) -> [UInt32?] {
        var times = HopTimes()
        times.take(marks, isNew: isNew)
        times.takeEnd(marks)
        return TransferPhase.allCases.map { times[$0] }
    }

    @Test func `a phase is the time between two marks`() {
        let marks = Self.marks(
            slot: 7, name: 10, connect: 30, tls: 70, sending: 71, firstByte: 171, end: 1_171)
        #expect(Self.phases(marks) == [7, 10, 20, 40, 100, 1_000])
    }

    @Test func `a plain connection has no handshake, a reused one none of the first phases`() {
        let plain = Self.marks(name: 10, connect: 30, sending: 31, firstByte: 40, end: 50)
        #expect(Self.phases(plain) == [0, 10, 20, nil, 9, 10])
        let reused = Self.marks(name: 1, connect: 1, tls: 1, sending: 2, firstByte: 40, end: 50)
        #expect(Self.phases(reused, isNew: false) == [0, nil, nil, nil, 38, 10])
    }

    @Test func `a failed connection has no later phases`() {
        #expect(Self.phases(Self.marks(name: 10)) == [0, 10, nil, nil, nil, nil])
    }

    @Test(arguments: [Int64.min, -1, 0, 1, 3_600_000_001, Int64.max])
    func `any marks give times between zero and an hour`(mark: Int64) {
        for other in [Int64.min, 0, 5, Int64.max] {
            let marks = Self.marks(
                slot: mark, name: other, connect: mark, tls: other, sending: mark,
                firstByte: other, end: mark)
            let times = Self.phases(marks).compactMap { $0 }
            #expect(times.allSatisfy { $0 <= HopTimes.longest })
        }
    }

    @Test func `a trace counts the attempts of all hops, those of the current one once`() {
        let trace = TransferTrace()
        #expect(trace.report == nil)
        var hop = HopTimes()
        hop.tries = 2
        trace.end(hop)
        #expect(trace.report?.tries == 2)
        hop.tries = 1
        trace.begin(hop)
        #expect(trace.report?.tries == 3)
        hop[.lastByte] = 5
        trace.end(hop)
        #expect(trace.report?.tries == 3 && trace.report?.latest[.lastByte] == 5)
    }
}

@Suite struct `Histograms of phases` {
    @Test func `every time is in a bucket whose middle differs by at most a sixteenth`() {
        var times: [UInt32] = Array(0...2_000)
        for shift in 11..<32 { times += [(1 << shift) - 1, 1 << shift, (1 << shift) + 1] }
        times.append(.max)
        var last = 0
        for time in times.sorted() {
            let bucket = PhaseHistogram.bucket(of: time)
            let middle = PhaseHistogram.middle(of: bucket)
            #expect(bucket >= last && bucket < 240)
            #expect(abs(Int64(middle) - Int64(time)) * 16 <= Int64(time), "\(time) \(middle)")
            last = bucket
        }
    }

    @Test func `percentiles are times of their rank`() {
        var histogram = PhaseHistogram()
        #expect(histogram.percentile(0.5) == nil)
        for time in 1...1_000 as ClosedRange<UInt32> { histogram.add(time * 100) }
        for (share, exact) in [(0.0, 100.0), (0.5, 50_000), (0.99, 99_000), (2, 100_000)] {
            let found = Double(histogram.percentile(share) ?? 0)
            #expect(abs(found - exact) <= exact / 15, "\(share) \(found)")
        }
    }

    @Test func `old times lose weight against new ones`() {
        var histogram = PhaseHistogram()
        for _ in 0..<100_000 { histogram.add(1_000) }
        #expect(histogram.count < PhaseHistogram.most)
        for _ in 0..<20_000 { histogram.add(64_000) }
        #expect((60_000...68_000).contains(histogram.percentile(0.5) ?? 0))
    }

    @Test func `counters for Prometheus count each time once, in the bucket of its bound`() {
        var counts = PhaseCounts()
        for time in [0, 1_000, 1_001, 10_000_000, 10_000_001, .max] as [UInt32] { counts.add(time) }
        #expect(counts.counts.reduce(0, +) == 6)
        #expect(counts.counts.first == 2 && counts.counts[1] == 1 && counts.counts.last == 2)
        #expect(counts.sum == 20_002_002 + UInt64(UInt32.max))
    }
}

@Suite struct `The table of origins` {
    private static func origin(_ number: Int) -> Origin {
        Origin(scheme: .https, host: "h\(number)", port: 443)
    }

    @Test func `the least recently used origin is replaced`() {
        var table = OriginTable(capacity: 3)
        for number in [1, 2, 3, 1, 4] {
            table.note(HopTimes(), to: Self.origin(number), bytes: 0, isError: false)
        }
        #expect(table.latestFirst.map(\.origin.host) == ["h4", "h1", "h3"])
        #expect(table[Self.origin(1)]?.requests == 2 && table[Self.origin(2)] == nil)
        #expect(table.replaced == 1)
    }

    @Test func `many origins do not grow the table`() {
        var table = OriginTable()
        for number in 0..<5_000 {
            table.note(HopTimes(), to: Self.origin(number), bytes: 1, isError: true)
        }
        #expect(table.count == table.capacity)
    }

    @Test func `a row has the shares of reused connections and resumed sessions`() throws {
        var table = OriginTable()
        var hop = HopTimes()
        table.note(hop, to: Self.origin(1), bytes: -5, isError: true)
        #expect(table[Self.origin(1)]?.reusedPercent == nil)
        hop.connection = .new
        hop.handshake = .full
        hop[.tls] = 20_000
        table.note(hop, to: Self.origin(1), bytes: 10, isError: false)
        hop.handshake = .resumed
        table.note(hop, to: Self.origin(1), bytes: 10, isError: false)
        hop = HopTimes()
        hop.connection = .reused
        for _ in 0..<2 { table.note(hop, to: Self.origin(1), bytes: 0, isError: false) }
        let row = try #require(table[Self.origin(1)])
        #expect(row.requests == 5 && row.errors == 1 && row.bytes == 20)
        #expect(row.reusedPercent == 50 && row.resumedPercent == 50)
        #expect(row.histogram(of: .tls).count == 2 && row.histogram(of: .name).count == 0)
    }

    @Test func `sessions of one host are in one place, those of many hosts in several`() {
        let places = (0..<1_000).map { TLSSessions.index(of: "cdn\($0).example.com") }
        #expect(Set(places).count == TLSSessions.shelfCount)
        #expect(TLSSessions.index(of: "a.example") == TLSSessions.index(of: "a.example"))
    }
}
