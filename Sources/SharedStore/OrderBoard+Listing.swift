// What a node learns of the others from the bucket, and what it shows of them.
package import Posix

extension OrderBoard {
    /// Takes a whole listing of `SharedOrderNames.all`.
    ///
    /// - Returns: what is to be read; once all of it is reported, `settle` decides.
    package mutating func list(
        _ objects: [(name: String, tag: String)], now: Monotonic
    ) -> [Action] {
        // Nobody was heard while this node could not list, which says nothing of them.
        if let last = listedAt, now - last > Interval(nanoseconds: silence.nanoseconds / 2) {
            for id in nodes.keys { nodes[id]?.changed = now }
        }
        listedAt = now
        for id in entries.keys {
            entries[id]?.listed = nil
            entries[id]?.older = []
            entries[id]?.olderClaims = []
        }
        var found: [SharedOrderID: (turn: Int, tag: String)] = [:]
        var reads: [Action] = []
        for (name, tag) in objects {
            switch SharedOrderNames.Meaning(name) {
            case nil: continue
            case .node(let node)?: reads += heard(node, tag, now)
            case .progress(let node)?:
                guard node != self.node, nodes[node] != nil,
                    progress[node]?.tag != tag || tag.isEmpty
                else { continue }
                progress[node] = (tag, progress[node]?.orders ?? [:])
                reads.append(.read(name))
            case .order(let id, let given, let node)?: list(id, given, name, node)
            case .claim(let id, let turn)?:
                if let other = found[id] {
                    let lower = min(other.turn, turn)
                    entries[id]?.olderClaims.append(SharedOrderNames.claim(id, turn: lower))
                    guard turn > other.turn else { continue }
                }
                found[id] = (turn, tag)
            }
        }
        for (id, entry) in entries.sorted(by: { $0.key < $1.key }) {
            if let listed = entry.listed, listed > entry.order?.given ?? .init(nanoseconds: 0),
                let name = newest[id],
                entry.unread.map({ $0.given != listed || now >= $0.until }) ?? true
            {
                reads.append(.read(name))
            }
            guard let (turn, tag) = found[id] else {
                // The claim was written meanwhile, or the bucket has lost it.
                guard !entry.isClaiming else { continue }
                entries[id]?.turn = -1
                entries[id]?.holder = nil
                continue
            }
            guard turn > entry.turn || turn == entry.turn && (tag != entry.claimTag || tag.isEmpty)
            else { continue }
            if turn > entry.turn { entries[id]?.holder = nil }
            entries[id]?.turn = turn
            entries[id]?.claimTag = tag
            reads.append(.read(SharedOrderNames.claim(id, turn: turn)))
        }
        return reads
    }

    private mutating func heard(_ node: String, _ tag: String, _ now: Monotonic) -> [Action] {
        guard var known = nodes[node] else {
            guard nodes.count < Self.mostNodes else { return [] }
            nodes[node] = Node(tag: tag, changed: now)
            return [.read(SharedOrderNames.node(node))]
        }
        if !tag.isEmpty, known.tag != tag { (known.tag, known.changed) = (tag, now) }
        nodes[node] = known
        // Without entity tags, the text tells whether it is another one.
        return known.name == nil || tag.isEmpty ? [.read(SharedOrderNames.node(node))] : []
    }

    private mutating func list(
        _ id: SharedOrderID, _ given: WallTime, _ name: String, _ node: String
    ) {
        guard entries[id] != nil || entries.count < Self.most else { return }
        var entry = entries[id] ?? Entry()
        defer { entries[id] = entry }
        if let other = entry.listed {
            guard given > other else { return entry.older.append(name) }
            if let former = newest[id] { entry.older.append(former) }
        }
        entry.listed = given
        newest[id] = name
        if let order = entry.order, order.given == given, order.node == node {
            entry.isUnwritten = false
        }
    }

    /// Takes the text of an object that was to be read.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - text: its bytes; nil if it is gone, cannot be read or cannot be opened.
    ///   - now: the monotonic time.
    ///   - isThere: true if the store has given it.
    ///   - hasFormerSeal: true if it was sealed with a key that seals no more.
    package mutating func read(
        _ name: String, _ text: [UInt8]?, now: Monotonic, isThere: Bool = true,
        hasFormerSeal: Bool = false
    ) {
        switch SharedOrderNames.Meaning(name) {
        case nil: return
        case .order(let id, let given, _)?:
            guard let text, let order = SharedOrder(name: name, text: text) else {
                if isThere { cannotRead(id, given, now: now) }
                return
            }
            guard order.given > entries[id]?.order?.given ?? .init(nanoseconds: 0) else { return }
            entries[id]?.order = order
            entries[id]?.unread = nil
            entries[id]?.isUnwritten = false
            entries[id]?.hasFormerSeal = hasFormerSeal
        case .claim(let id, let turn)?:
            guard entries[id]?.turn == turn else { return }
            let holder = String(decoding: text ?? [], as: UTF8.self)
            guard SharedOrder.isHexadecimal(holder, atMost: 16) else {
                // Read again with the next listing.
                entries[id]?.claimTag = nil
                return
            }
            entries[id]?.holder = holder
        case .node(let node)?:
            guard let text, let beat = SharedHeartbeat(text: text) else { return }
            nodes[node]?.name = beat.name
            guard let known = nodes[node], known.tag.isEmpty || known.tag.hasPrefix("beat ") else {
                return
            }
            let tag = "beat \(beat.count)"
            guard known.tag != tag else { return }
            nodes[node]?.tag = tag
            nodes[node]?.changed = now
        case .progress(let node)?:
            guard let text, let all = SharedOrderProgress.parse(text) else {
                progress[node]?.tag = ""
                return
            }
            progress[node]?.orders = Dictionary(
                all.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
            note(refusals: all, of: node)
        }
    }

    // MARK: Showing

    /// All orders, by number.
    package func views(now: Monotonic) -> [View] {
        entries.sorted { $0.key < $1.key }.compactMap { id, entry in
            guard let order = entry.order else { return nil }
            let holder = entry.holder ?? (entry.isHere ? node : nil)
            let told = holder.flatMap { progress[$0]?.orders[id] }
            return View(
                order: order, holder: holder, holderName: holder.flatMap { nodes[$0]?.name },
                progress: told?.refused == nil ? told : nil,
                isHeard: holder.map { $0 == node || isHeard($0, within: silence, now) } ?? false,
                isHere: entry.isHere,
                isRefused: holder.map { unable(entry, order).contains($0) } ?? false)
        }
    }
}
