// The lines of the comparison: name, measured quantity, and which direction is better.

/// One line of the table.
struct Line: Equatable {
    /// Its name, from the workload to the figure: `cold.c8.cpu`.
    let id: String
    let what: String
    let unit: String
    /// True if more is better.
    var isMoreBetter = false

    /// The workload's name.
    var workload: String { String(id.prefix { $0 != "." }) }

    /// The command that measures it again.
    var command: String { "make bench BENCH_FLAGS=\(id)" }

    private static func less(_ id: String, _ what: String, _ unit: String) -> Line {
        Line(id: id, what: what, unit: unit)
    }

    private static func more(_ id: String, _ what: String, _ unit: String) -> Line {
        Line(id: id, what: what, unit: unit, isMoreBetter: true)
    }

    /// All lines, in the order of the table.
    static let all: [Line] =
        large + small + cold + join + ranges + memory + failure + objects + playlist + secure

    /// The workloads in the order in which they run, each once.
    static let workloads: [String] = all.reduce(into: []) { names, line in
        if names.last != line.workload { names.append(line.workload) }
    }

    private static func connections(_ count: Int) -> String {
        count == 1 ? "1 connection" : "\(count) connections"
    }

    private static let large: [Line] = [1, 8, 64].flatMap { count -> [Line] in
        let name = "2 MB hit, \(connections(count))"
        return [
            less("large.c\(count).cpu", "\(name): CPU", "s/GB"),
            more("large.c\(count).rate", "\(name): rate", "MB/s"),
            less("large.c\(count).first", "\(name): 99 % of first bytes", "ms"),
        ]
    }

    private static let small: [Line] = [("keep", "kept"), ("close", "new")].flatMap { id, word in
        [
            less("small.\(id).cpu", "2 KB hit, 64 \(word) connections: CPU", "us/request"),
            more("small.\(id).rate", "2 KB hit, 64 \(word) connections: rate", "requests/s"),
        ]
    }

    private static let cold: [Line] = [1, 8, 32].flatMap { count -> [Line] in
        let name = "2 MB miss, \(connections(count))"
        let first = less("cold.c1.first", "\(name): first byte over direct", "ms")
        return [
            less("cold.c\(count).cpu", "\(name): CPU", "s/GB"),
            more("cold.c\(count).rate", "\(name): rate", "MB/s"),
        ] + (count == 1 ? [first] : [])
    }

    private static let join = [
        less("join.late.first", "a player 1 s late: first byte", "ms"),
        less("join.late.requests", "a player 1 s late: origin requests", ""),
        less("join.herd.first", "50 players at once: 99 % of first bytes over the origin's", "ms"),
        less("join.herd.requests", "50 players at once: origin requests", ""),
    ]

    private static let ranges = [
        less("ranges.far.first", "a far range of 64 MiB, asked first: first byte", "ms"),
        less("ranges.parts.beyond", "five ranges: origin bytes beyond them", "MB"),
        less("ranges.again.first", "a range within a stored one: first byte", "ms"),
        less("ranges.whole.twice", "then the whole: origin bytes fetched twice", "MB"),
    ]

    private static let memory = [
        less("memory.idle.pss", "idle: memory", "MB"),
        less("memory.connection.pss", "an idle connection, of 1,000: memory", "KB"),
        less("memory.cached.pss", "a slow reader of a stored 2 MB, of 200: memory", "KB"),
        less("memory.cold.pss", "a slow reader of a cold 2 MB, of 200: memory", "KB"),
    ]

    private static let failure = [
        more("failure.ways.whole", "origin breaks in 6 ways: players with the whole", ""),
        less("failure.ways.passed", "origin breaks in 6 ways: cut bodies passed as whole", ""),
        less("failure.ways.kept", "origin breaks in 6 ways: cut bodies kept as whole", ""),
        less("failure.ways.twice", "origin breaks in 6 ways: origin bytes fetched twice", "MB"),
    ]

    private static let objects = [
        less("objects.miss.cpu", "many 4 KB objects, a miss: CPU", "us/request"),
        less("objects.hit.cpu", "many 4 KB objects, random hits: CPU", "us/request"),
        more("objects.hit.rate", "many 4 KB objects, random hits: rate", "requests/s"),
        less("objects.all.pss", "many 4 KB objects: memory", "MB"),
        less("objects.restart.first", "many 4 KB objects: first hit after a restart", "ms"),
        more("objects.restart.hits", "many 4 KB objects: hits of 100 after a restart", ""),
    ]

    private static let playlist: [Line] = [("k1", "1,000"), ("k20", "20,000")].flatMap { id, size in
        [
            less("playlist.\(id).cold", "list of \(size) segments, new session: CPU", "us/request"),
            less("playlist.\(id).memory", "list of \(size) segments, again: CPU", "us/request"),
        ]
    }

    private static let secure: [Line] = [("h1", "HTTPS"), ("h2", "HTTP/2")].flatMap { id, kind in
        [
            less("secure.\(id).cpu", "2 MB miss from \(kind), 8 connections: CPU", "s/GB"),
            more("secure.\(id).rate", "2 MB miss from \(kind), 8 connections: rate", "MB/s"),
            less("secure.\(id).opened", "2 MB misses from \(kind): connections to the origin", ""),
        ]
    }
}

/// The requested lines: names of workloads, of parts of workloads, or of single lines.
struct LineSelection {
    /// As typed: `cold`, `cold.c8`, `cold.c8.cpu`.
    let names: [String]

    /// Whether a part must be measured: something above or below it was requested.
    func needs(_ part: String) -> Bool {
        names.contains { $0 == part || $0.hasPrefix(part + ".") || part.hasPrefix($0 + ".") }
    }

    /// Whether a line was requested and is printed.
    func shows(_ id: String) -> Bool {
        names.contains { id == $0 || id.hasPrefix($0 + ".") }
    }

    /// Whether a name matches any line.
    static func isKnown(_ name: String) -> Bool {
        Line.all.contains { $0.id == name || $0.id.hasPrefix(name + ".") }
    }
}
