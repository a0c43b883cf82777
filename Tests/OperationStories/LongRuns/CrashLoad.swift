// The load of players on a daemon that is about to be killed, and the checks of their responses.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization

/// The findings of one round of kills.
struct CrashTally: Sendable {
    var kills = 0
    var answers = 0
    var bytes = 0
    var hits = 0
    /// Answers without content.
    var refusals: [String] = []
    /// Responses that match no generation of the origin's content.
    var faults: [String] = []
    /// Files and bytes on the disk that belong to no object.
    var orphans: [String] = []

    static func += (sum: inout Self, part: Self) {
        sum.kills += part.kills
        sum.answers += part.answers
        sum.bytes += part.bytes
        sum.hits += part.hits
        sum.refusals += part.refusals
        sum.faults += part.faults
        sum.orphans += part.orphans
    }
}

extension CrashWorld {
    /// Kills the daemon repeatedly, and checks everything after each restart.
    func round(kills: Int, until end: ContinuousClock.Instant?, _ dice: inout SeededDice) throws
        -> CrashTally
    {
        var tally = CrashTally()
        try start()
        while tally.kills < kills, end.map({ .now < $0 }) ?? true {
            tally += try loadAndKill(&dice)
            if dice.oneIn(3) { renew(dice.roll(CrashSubject.all.count), &dice) }
            if dice.oneIn(8) {
                try startAndKill(afterMicroseconds: dice.roll(90_000))
                tally.kills += 1
            }
            try start()
            tally += try readEverything()
            if tally.kills % 10 == 0 { tally.orphans += try orphans() }
            guard tally.faults.isEmpty, tally.orphans.isEmpty else { break }
        }
        tally.orphans += try orphans()
        return tally
    }

    /// Players make random requests until the daemon is killed.
    func loadAndKill(_ dice: inout SeededDice) throws -> CrashTally {
        let isOver = Shared(false)
        let oldest = present
        let seed = dice.next()
        let players = (0..<5).map { player in
            Background { () -> CrashTally in
                var dice = SeededDice(seed, player)
                var tally = CrashTally()
                while !isOver.value { tally += self.visit(notBefore: oldest, &dice) }
                return tally
            }
        }
        let delay = dice.roll(dice.oneIn(4) ? 300_000 : 60_000)
        usleep(UInt32(delay / 2))
        // Objects change meanwhile, too.
        for _ in 0..<dice.roll(3) { renew(dice.roll(CrashSubject.all.count), &dice) }
        usleep(UInt32(delay / 2))
        if dice.oneIn(8) {
            try daemon().kill(SIGTERM)
            usleep(UInt32(dice.roll(40_000)))
        }
        try daemon().kill(SIGKILL)
        isOver.update { $0 = true }
        var tally = CrashTally(kills: 1)
        for player in players { tally += try player.value(within: .seconds(30)) }
        kill()
        return tally
    }

    /// One visit of one player.
    private func visit(notBefore oldest: [Int], _ dice: inout SeededDice) -> CrashTally {
        let subject = dice.roll(CrashSubject.all.count)
        let first = dice.roll(CrashSubject.all[subject].sizes.lowerBound)
        let last = first + dice.roll(200_000)
        let ranges = [
            nil, nil, "bytes=\(first)-\(last)", "bytes=\(first)-", "bytes=-\(last + 1)",
        ]
        let range = ranges[dice.roll(ranges.count)]
        let mostBytes = dice.oneIn(3) ? dice.roll(150_000) + 1 : Int.max
        do {
            return try read(subject, range, mostBytes, oldest[subject])
        } catch {
            // The daemon has ended, or has not started yet.
            return CrashTally()
        }
    }

    /// Reads an object, or a part of it, and compares the bytes with what the origin has had.
    func read(_ subject: Int, _ range: String?, _ mostBytes: Int, _ oldest: Int) throws
        -> CrashTally
    {
        let player = try ScriptedPlayer(daemon().baseURL)
        let stream = try player.open(
            try url(of: subject), headers: range.map { [("Range", $0)] } ?? [])
        let head = try stream.readHead()
        guard head.status == 200 || head.status == 206 else {
            let words = String(decoding: try stream.readRest(), as: UTF8.self)
            return CrashTally(answers: 1, refusals: ["\(head.startLine): \(words)"])
        }
        let body = try stream.read(mostBytes)
        let isWhole = stream.isDone && stream.broken == nil
        if !isWhole { stream.abort() }
        var tally = CrashTally(answers: 1, bytes: body.count)
        if head["Cache-Status"]?.contains("hit") == true { tally.hits = 1 }
        let what = "\(CrashSubject.all[subject]) \(range ?? "whole"): \(head)"
        let place = ContentRange(head)
        let known = generation(
            of: subject, with: body, at: place.start, total: place.total,
            from: CrashSubject.all[subject].isRevalidated ? oldest : 0)
        guard let known else {
            tally.faults.append("\(body.count) bytes of no generation, \(what)")
            return tally
        }
        let end = place.end ?? known.length
        if isWhole, place.start + body.count != end {
            tally.faults.append("a clean end after \(body.count) bytes, \(what)")
        }
        return tally
    }

    /// Reads every object whole, without other load.
    func readEverything() throws -> CrashTally {
        let newest = present
        setHaste(true)
        defer { setHaste(false) }
        let parts = try inParallel(3) { part -> CrashTally in
            var tally = CrashTally()
            for subject in CrashSubject.all.indices where subject % 3 == part {
                let one = try self.read(subject, nil, Int.max, newest[subject])
                tally += one
                guard one.bytes == 0 else { continue }
                tally.faults.append("no bytes of \(CrashSubject.all[subject]): \(one.refusals)")
            }
            return tally
        }
        return parts.reduce(into: CrashTally()) { $0 += $1 }
    }

    // MARK: Orphans

    /// Files in the folder that belong to no object while nothing is running.
    func orphans() throws -> [String] {
        var found: [String] = []
        _ = try eventually {
            found = try strangers()
            return found.isEmpty
        }
        return found
    }

    private func strangers() throws -> [String] {
        let ours = [
            "format", "history.json", "lock", "new", "objects", "pins", "reserve", "running",
        ]
        var found = listFolder(cacheFolder).filter { name in
            !ours.contains(name) && !name.hasPrefix("index.sqlite")
                && !name.hasPrefix("state.sqlite") && !name.hasPrefix("reserve-")
        }
        let objects = listFolder(cacheFolder + "/objects").flatMap { shard in
            listFolder("\(cacheFolder)/objects/\(shard)").map { "objects/\(shard)/\($0)" }
        }
        found += listFolder(cacheFolder + "/new").map { "new/\($0)" }
        let claimed = try figure("stored_objects")
        if objects.count != claimed { found.append("\(objects.count) files, \(claimed) objects") }
        let claimedBytes = try figure("stored_bytes")
        let bytes = objects.reduce(0) { sum, name in
            var status = stat()
            return stat("\(cacheFolder)/\(name)", &status) == 0
                ? sum + Int(status.st_blocks) * 512 : sum
        }
        if bytes > claimedBytes { found.append("\(bytes) bytes, \(claimedBytes) claimed") }
        return found
    }
}

/// The position of a response's bytes in the whole.
private struct ContentRange {
    var start = 0
    /// One past the last byte; nil for a response that is the whole.
    var end: Int?
    var total: Int?

    init(_ head: WireHead) {
        guard head.status == 206, let text = head["Content-Range"], text.hasPrefix("bytes ") else {
            return
        }
        let parts = text.dropFirst(6).split(whereSeparator: { $0 == "-" || $0 == "/" })
        start = parts.first.flatMap { Int($0) } ?? -1
        end = parts.count > 1 ? Int(parts[1]).map { $0 + 1 } : nil
        total = parts.count > 2 ? Int(parts[2]) : nil
    }
}
