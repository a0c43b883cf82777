import Posix
import Synchronization

@testable import Store

/// The steps of readers, which find bytes in one and send them in a later one.
extension InterleavedWorld {
    private func pickReader(
        where fits: (KnownReader) -> Bool
    ) -> (known: KnownObject, reader: KnownReader)? {
        var found: [(known: KnownObject, reader: KnownReader)] = []
        for known in objects {
            for reader in known.readers where fits(reader) { found.append((known, reader)) }
        }
        return pick(found)
    }

    func enter() -> Bool {
        guard let known = pick(objects.filter { $0.readers.count < 3 }) else { return false }
        let offset = happens(oneIn: 3) ? 0 : roll(in: 0..<known.body.total)
        let end = happens(oneIn: 3) ? roll(in: offset..<known.body.total) + 1 : known.body.total
        known.readers.append(
            KnownReader(from: offset, to: end, isRegistered: known.mustRegister))
        note("a reader of \(known) enters from \(offset) to \(end)")
        return true
    }

    func look() throws -> Bool {
        guard let (known, reader) = pickReader(where: \.isIdle) else { return false }
        let offset = reader.offset
        switch known.object.state(at: offset) {
        case .present(let count):
            let taken = min(count, reader.end - offset, roll(in: 1..<256 << 10))
            reader.stage = .offered(offset..<offset + taken)
            note("a reader of \(known) finds \(taken) bytes at \(offset)")
        case .hole(let hole):
            reader.isRegistered = true
            reader.stage = .hole(hole, ends: known.ends)
            note("a reader of \(known) finds a hole at \(offset)")
        case .end:
            throw BrokenRule(description: "\(known) does not end at \(offset)")
        }
        return true
    }

    func waitForBytes() throws -> Bool {
        guard let (known, reader) = pickReader(where: \.foundHole),
            case .hole(let hole, let ends) = reader.stage
        else { return false }
        let calls = ReadingTests.Calls()
        let waiter = calls.waiter
        switch known.object.wait(at: reader.offset, since: hole, waiter) {
        case .ready: reader.stage = .idle
        case .waiting: reader.stage = .waiting(calls, id: waiter.id, ends: ends)
        }
        note("a reader of \(known) at \(reader.offset) waits: \(reader.isWaiting)")
        return true
    }

    func takeBytes() throws -> Bool {
        guard let (known, reader) = pickReader(where: \.hasOffer),
            case .offered(let range) = reader.stage
        else { return false }
        note("a reader of \(known) takes \(range)")
        try require(
            known.body.matches(read(known.object, range), range),
            "a reader of \(known) gets the bytes \(range) that were written")
        reader.offset = range.upperBound
        reader.stage = .idle
        if happens(oneIn: 2) { reader.reported = reader.offset }
        if !known.object.isStorable { punch(known, by: reader) }
        if reader.offset == reader.end { leave(reader, of: known) }
        return true
    }

    func leave() -> Bool {
        guard let (known, reader) = pickReader(where: { _ in true }) else { return false }
        note("a reader of \(known) leaves at \(reader.offset)")
        leave(reader, of: known)
        return true
    }

    func leave(_ reader: KnownReader, of known: KnownObject) {
        if case .waiting(_, let id, _) = reader.stage { known.object.cancelWait(id) }
        known.readers.removeAll { $0 === reader }
    }

    func punch() -> Bool {
        let unnamed = objects.filter { !$0.object.isStorable && $0.least != nil }
        let pending = unnamed.filter { $0.fills.contains { $0.pending != nil } }
        guard let known = pick(pending.isEmpty || happens(oneIn: 3) ? unnamed : pending) else {
            return false
        }
        note("punch \(known) below \(known.least ?? 0)")
        punch(known)
        return true
    }

    /// Frees what all readers have passed; a single reader need not have reported it.
    private func punch(_ known: KnownObject, by reader: KnownReader? = nil) {
        let registered = known.readers.filter(\.isRegistered)
        let isAlone = registered.count == 1 && registered.first === reader
        let least = isAlone ? reader?.offset : known.least
        let passed = (least ?? 0) - Self.overlap
        let done = known.object.state.withLock { $0.punchedEnd }
        let reach = passed / Self.punchBytes * Self.punchBytes
        let isRace = known.fills.contains { fill in
            guard let piece = fill.pending else { return false }
            return piece.lowerBound < reach && piece.upperBound > done
        }
        if isRace { raced += 1 }
        known.object.punch(upTo: passed)
    }

    func readShort() throws -> Bool {
        guard let known = pick(objects) else { return false }
        let start = roll(in: 0..<known.body.total)
        let range = start..<min(known.body.total, start + roll(in: 1..<16_385))
        guard let bytes = known.object.shortBytes(range) else { return true }
        note("read \(range) of \(known)")
        try require(known.body.matches(bytes, range), "the bytes \(range) of \(known) are right")
        return true
    }

    func readStart() throws -> Bool {
        guard let known = pick(objects) else { return false }
        let range = 0..<min(known.body.total, roll(in: 1..<512 << 10))
        guard let bytes = try? readBody(of: known.object, count: range.count) else { return true }
        note("read \(range) of \(known) as text")
        try require(known.body.matches(bytes, range), "the bytes \(range) of \(known) are right")
        return true
    }
}
