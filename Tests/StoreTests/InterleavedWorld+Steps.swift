import Glibc
import Posix
import Synchronization

@testable import Store

/// The steps of fills, of the store and of its restarts.
extension InterleavedWorld {
    /// Makes a random step that is possible, and checks the rules.
    func step() throws {
        while try !perform(InterleavedStep.deck[roll(InterleavedStep.deck.count)]) {}
        try check()
    }

    /// Returns false if the step is not possible.
    private func perform(_ step: InterleavedStep) throws -> Bool {
        switch step {
        case .create: try create()
        case .publish: try publish()
        case .beginFill: beginFill()
        case .write: try writePiece()
        case .extend: try showPiece()
        case .endFill: try endFill()
        case .learnTotal: try learnTotal()
        case .enter: enter()
        case .look: try look()
        case .wait: try waitForBytes()
        case .take: try takeBytes()
        case .leave: leave()
        case .punch: punch()
        case .shortBytes: try readShort()
        case .readBody: try readStart()
        case .lookup: try lookUp(Self.names[roll(Self.names.count)])
        case .release: release()
        case .forgetName, .discard, .replaceHead: try change(step)
        case .remove, .clear, .finish, .catchUp, .flush, .reserve: try command(step)
        case .reopen, .kill: try restart(step)
        }
    }

    // MARK: Fills

    private func create() throws -> Bool {
        guard objects.count < Self.mostHeld else { return false }
        let body = KnownBody(
            number: bodies.count, name: Self.names[roll(Self.names.count)],
            total: roll(in: 256 << 10..<Int64(KnownBytes.longest)))
        bodies.append(body)
        let total = happens(oneIn: 4) ? nil : body.total
        var description = describe(body.name, total: total, isStorable: !happens(oneIn: 3))
        description.head = body.head
        description.expectsWholeBody = happens(oneIn: 2)
        let known = KnownObject(body, try store.create(description))
        objects.append(known)
        try settle()
        note("create \(known)")
        return true
    }

    private func publish() throws -> Bool {
        let ready = objects.filter { known in
            known.object.state.withLock { $0.place == .unpublished && !$0.isDiscarded }
        }
        guard let known = pick(ready) else { return false }
        note("publish \(known)")
        try store.publish(known.object)
        published[known.body.name]?.isGone = true
        published[known.body.name] = known.body
        return true
    }

    private func beginFill() -> Bool {
        guard let known = pick(objects.filter { $0.fills.count < 2 }) else { return false }
        let total = known.body.total
        let start =
            switch roll(4) {
            case 0: Int64(0)
            case 1: roll(in: 0..<total)
            // Behind all readers, as after the one that it was for has left.
            case 2: roll(in: 0..<max(1, known.least ?? total))
            default: known.object.spans.contiguousEnd(from: known.readers.first?.offset ?? 0)
            }
        guard start < total else { return false }
        let end = happens(oneIn: 3) ? roll(in: start..<total) + 1 : nil
        let id = known.object.beginFill(from: start, to: end)
        known.fills.append(KnownFill(id: id, limit: end ?? total, watermark: start))
        note("fill \(known) from \(start) to \(end ?? total)")
        return true
    }

    /// Picks a fill with a pending piece, or without one.
    private func pickFill(isPending: Bool) -> (known: KnownObject, index: Int)? {
        var found: [(known: KnownObject, index: Int)] = []
        for known in objects {
            for (index, fill) in known.fills.enumerated()
            where (fill.pending != nil) == isPending {
                found.append((known, index))
            }
        }
        return pick(found)
    }

    private func writePiece() throws -> Bool {
        guard let (known, index) = pickFill(isPending: false) else { return false }
        let fill = known.fills[index]
        let end = min(fill.limit, fill.watermark + roll(in: 1..<128 << 10))
        let piece = fill.watermark..<end
        note("write \(piece) of \(known)")
        try noticingLostName(of: known) {
            do {
                try known.body.withBytes(piece) {
                    try known.object.write($0, at: piece.lowerBound)
                }
                known.fills[index].pending = piece
            } catch let error as SystemError where [ENOSPC, EDQUOT].contains(error.code) {
                note("it fails: \(error)")
                if happens(oneIn: 2) { discard(known, because: error) }
                try endFill(index, of: known, failure: error)
            }
        }
        try settle()
        return true
    }

    private func showPiece() throws -> Bool {
        guard let (known, index) = pickFill(isPending: true),
            let piece = known.fills[index].pending
        else { return false }
        let fill = known.fills[index]
        note("show \(piece) of \(known)")
        var sums: [UInt32] = []
        if known.object.keepsChecksums, happens(oneIn: 2) {
            try known.body.withBytes(piece) { sums = checksums(of: $0, at: piece.lowerBound) }
        }
        known.body.shown.insert(piece)
        known.object.extend(fill.id, to: piece.upperBound, sums: sums, of: piece)
        known.fills[index].pending = nil
        known.fills[index].watermark = piece.upperBound
        if piece.upperBound == fill.limit {
            if fill.limit == known.body.total {
                try require(known.object.learnTotal(fill.limit), "the end of \(known) is right")
            }
            try endFill(index, of: known, failure: nil)
        }
        try settle()
        try verify(known, piece)
        return true
    }

    private func endFill() throws -> Bool {
        guard let (known, index) = pickFill(isPending: happens(oneIn: 2)) else { return false }
        let fails = happens(oneIn: 2)
        note("end a fill of \(known) at \(known.fills[index].watermark), fails: \(fails)")
        try endFill(index, of: known, failure: fails ? ReadingTests.Broken() : nil)
        return true
    }

    /// Ends a fill; a piece that was written and not shown is lost.
    func endFill(_ index: Int, of known: KnownObject, failure: (any Error)?) throws {
        let fill = known.fills.remove(at: index)
        known.object.endFill(fill.id, failure: failure)
        known.ends += 1
        if known.fills.isEmpty { try store.finish(known.object) }
    }

    private func learnTotal() throws -> Bool {
        guard let known = pick(objects.filter { $0.object.total == nil }) else { return false }
        note("learn the length of \(known)")
        try require(known.object.learnTotal(known.body.total), "the length of \(known) is right")
        return true
    }

    // MARK: Objects

    /// Looks a name up, and holds what is found if there is room.
    func lookUp(_ name: String) throws -> Bool {
        let result = try store.lookup(ObjectKey(sha256Of: name))
        note("look up \(name): \(result == nil ? "nothing" : "found")")
        if let held = objects.first(where: { $0.body.name == name && $0.object.isCurrent }) {
            try require(result === held.object, "\(held), which is in use, is found")
        }
        guard let found = result else { return true }
        guard let number = KnownBody.number(inHead: found.head), bodies.indices.contains(number)
        else { throw BrokenRule(description: "\(name) has a head that was made") }
        let body = bodies[number]
        try require(
            published[name] === body && !body.isGone, "\(body), which was removed, is not found")
        if objects.count < Self.mostHeld, !objects.contains(where: { $0.object === found }) {
            objects.append(KnownObject(body, found))
        }
        return true
    }

    private func release() -> Bool {
        let free = objects.filter { $0.fills.isEmpty && $0.readers.isEmpty }
        guard let known = pick(free) else { return false }
        note("release \(known)")
        objects.removeAll { $0 === known }
        return true
    }

    /// Runs a step after which an object may have no name.
    private func noticingLostName(of known: KnownObject, _ step: () throws -> Void) throws {
        let wasCurrent = known.object.isCurrent
        try step()
        // A removed object may have lost its name to another object with the same body.
        guard wasCurrent, !known.object.isStorable, !known.object.isRemoved else { return }
        known.body.isGone = true
    }

    func discard(_ known: KnownObject, because failure: SystemError? = nil) {
        if !known.object.isDiscarded { known.ends += 1 }
        if known.object.isCurrent { known.body.isGone = true }
        known.object.discard(because: failure)
    }

    private func change(_ step: InterleavedStep) throws -> Bool {
        guard step != .replaceHead || hasLongHeads,
            let known = pick(objects.filter { !$0.object.isDiscarded })
        else { return false }
        note("\(step): \(known)")
        switch step {
        case .forgetName:
            try noticingLostName(of: known) { try store.forgetName(of: known.object) }
        case .discard: discard(known)
        default:
            // Longer than a page, or not: the object may have to move into another file.
            let more = [UInt8](repeating: 0x2E, count: roll(6_000))
            known.object.replaceHead(known.body.head + more)
        }
        try settle()
        return true
    }

    private func command(_ step: InterleavedStep) throws -> Bool {
        note("\(step)")
        switch step {
        case .remove:
            let name = Self.names[roll(Self.names.count)]
            note("its name is \(name)")
            try store.remove(ObjectKey(sha256Of: name))
            published[name]?.isGone = true
        case .clear:
            _ = try store.clear(sparingPinned: false)
            for body in published.values { body.isGone = true }
        case .finish:
            guard let known = pick(objects) else { return false }
            try store.finish(known.object)
        case .catchUp: try store.catchUp(within: Self.patience)
        case .flush:
            try require(store.flush(within: Self.patience), "everything is written")
        default: _ = try store.reserve(roll(in: 0..<2 << 20))
        }
        try settle()
        return true
    }

    // MARK: Restarts

    /// Closes the store, or leaves its folder as a kill does, and opens it again.
    private func restart(_ step: InterleavedStep) throws -> Bool {
        note("\(step)")
        var next = path
        if step == .kill {
            try settle()
            try deleteCleared()
            next = nextPath()
            try copyFolder(path, to: next, except: ["lock", "reserve", "reserve-stop"])
            if happens(oneIn: 2) { try damage(next + "/objects") }
        }
        try releaseAll()
        try close()
        path = next
        try open()
        return true
    }

    /// Overwrites parts of bodies, as a power cut may lose them.
    private func damage(_ folder: String) throws {
        for part in try listFolder(folder).map(\.name).sorted() {
            for name in try listFolder("\(folder)/\(part)").map(\.name).sorted() {
                let file = try openFile("\(folder)/\(part)/\(name)", flags: O_RDWR)
                let size = try fileSize(file.number)
                // Headers are shorter.
                guard size > 256 << 10, happens(oneIn: 2) else { continue }
                let start = roll(in: 128 << 10..<size)
                let zeros = [UInt8](repeating: 0, count: Int(min(size - start, 64 << 10)))
                try write(zeros, to: file.number, at: start)
                note("lose \(zeros.count) bytes at \(start) of \(name)")
            }
        }
    }
}
