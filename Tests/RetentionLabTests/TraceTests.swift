import Retention
import RetentionLab
import Testing

/// Properties of generated traces, and their text form.
@Suite struct `Traces` {
    @Test(arguments: TraceName.allCases)
    func `traces are equal for equal seeds and differ for others`(_ name: TraceName) {
        let trace = name.generator.requests(seed: 7)
        #expect(trace == name.generator.requests(seed: 7))
        #expect(trace != name.generator.requests(seed: 8))
    }

    @Test(arguments: TraceName.allCases)
    func `traces are in order of time, and an object has one size`(_ name: TraceName) {
        let trace = name.generator.requests(seed: 7)
        #expect(zip(trace, trace.dropFirst()).allSatisfy { $0.time <= $1.time })
        var sizes: [UInt128: Int64] = [:]
        var changes = 0
        for request in trace {
            let known = sizes.updateValue(request.size, forKey: request.name)
            if known ?? request.size != request.size { changes += 1 }
        }
        #expect(changes == 0)
    }

    @Test func `a line is parsed into time, name, size, title, kind and part`() throws {
        var reader = TraceReader()
        try reader.read(
            Array(
                """
                # a comment

                1700000002 http://cdn/a.ts 1000 film media 200 300
                1700000001.5 http://cdn/b.m3u8 50 film structure
                1700000003 http://cdn/c.ts 70 - media+
                """.utf8))
        let requests = reader.finish()
        #expect(requests.map(\.time) == [1_700_000_001, 1_700_000_002, 1_700_000_003])
        #expect(requests.map(\.size) == [50, 1000, 70])
        #expect(requests.map(\.length) == [50, 300, 70])
        #expect(requests.map(\.kind) == [.structure, .media, .media])
        #expect(requests[0].title == requests[1].title && requests[2].title == 0)
        #expect(requests.map(\.isAhead) == [false, false, true])
    }

    @Test func `a line of the access log gives the object and the bytes read`() throws {
        var reader = TraceReader()
        let key = "00000000000000000000000000000abc"
        try reader.read(
            Array(
                """
                17.250 GET 206 300 2.100 hit - s 00000000002a \(key) 200 1000 https://cdn/a.ts ::1
                17.300 GET 200 90 2.100 miss - - 00000000002a \(key) 0 - https://cdn/a.m3u8 ::1 HTTP/2 TLSv1.3 peer=192.0.2.7 tries=1
                18.000 GET 200 5 0.100 own - - - - - - -
                19.000 HEAD 200 0 0.100 hit - s 00000000002a \(key) 0 1000 https://cdn/a.ts

                """.utf8))
        #expect(reader.skipped == 2)
        let requests = reader.requests
        #expect(requests.map(\.name) == [0xabc, 0xabc])
        #expect(requests.map(\.title) == [42, 42])
        #expect(requests.map(\.size) == [1000, 90])
        #expect(requests.map(\.length) == [300, 90])
        #expect(requests.map(\.kind) == [.media, .structure])
    }

    @Test(arguments: [
        "1 name", "x name 5", "1 name -5", "1 name 5 t film", "1 name 5 t media 0",
        "1 name 99999999999999999999", "5000000000 name 1",
        "1 GET 200 5 1 hit - s 2a ab 0 5 https://cdn/a.ts 127.0.0.1 HTTP/2 - complete nameless",
    ])
    func `a malformed line is reported by its number`(_ line: String) {
        var reader = TraceReader()
        #expect(throws: TraceReader.Fault.self) {
            try reader.read(Array("# first\n\(line)\n".utf8))
        }
        do throws(TraceReader.Fault) {
            try reader.read(Array(line.utf8))
        } catch {
            #expect(error.line == 3)
        }
    }
}
