import HLS
import Lookahead
import Numbers
import URISyntax

/// The planner's actions, carried out in the arithmetic of `FeedModel`.
extension FeedModel {
    func perform(_ actions: [FeedAction]) {
        for action in actions {
            switch action {
            case .read(let content):
                reading[content] = 0
                readOn(content)
            case .fetch(let id, let content, let piece, let yields):
                let number =
                    piece.url.path.split(separator: "/").last.flatMap {
                        ExternalNumber.integer($0, in: 0...ExternalNumber.largest)
                    } ?? 2
                let name = Name(item: content, resource: number)
                let end = min(
                    size(of: name), piece.range.map { Double($0.upperBound) } ?? .infinity)
                held[id] = (name, end, yields)
                retry(id)
            case .setYields(let id, let yields):
                if let transfer = transfers.first(where: { $0.fetch == id }) {
                    transfer.yields = yields
                }
                held[id]?.yields = yields
                flush()
                retry(id)
            case .cancel(let id): cancel(id)
            }
        }
        if nextTick == nil, planner.needsTicks(at: now) {
            nextTick = now + (planner.awaited.isEmpty ? 0.5 : 0.1)
        }
    }

    func retryHeld() {
        for id in held.keys.sorted(by: { $0.number < $1.number }) { retry(id) }
    }

    func retry(_ id: AheadID) {
        guard let (name, end, yields) = held[id] else { return }
        if (stored[name] ?? 0) >= end - 0.5 {
            held[id] = nil
            return perform(planner.ended(id, AheadResult(.stored), at: now))
        }
        // Waits for another transfer of the same resource.
        if let other = transfers.first(where: { $0.name == name }) {
            if other.fetch == nil, !other.isPlayback { other.fetch = id }
            return
        }
        if yields, hasPlayback { return }
        held[id] = nil
        let transfer = begin(name, to: end, isPlayback: false)
        transfer.fetch = id
        transfer.yields = yields
    }

    func ended(_ id: AheadID, _ transfer: Transfer) {
        guard held[id] == nil else { return retry(id) }
        let bytes = Int64(transfer.position - transfer.start)
        perform(planner.ended(id, AheadResult(.stored, bytes: bytes), at: now))
    }

    func cancel(_ id: AheadID) {
        let joined = held.removeValue(forKey: id) != nil
        if let transfer = transfers.first(where: { $0.fetch == id }) {
            transfer.fetch = nil
            let left = transfer.end - transfer.position - transfer.waiting
            if !joined, !transfer.isPlayback, left > terms.single * 0.1 { drop(transfer) }
        }
        perform(planner.ended(id, AheadResult(.cancelled), at: now))
    }

    func readOn(_ item: Int) {
        guard let next = reading[item] else { return }
        for resource in next..<2 {
            let name = Name(item: item, resource: resource)
            reading[item] = resource
            guard isWhole(name) else {
                if !transfers.contains(where: { $0.name == name }) {
                    begin(name, to: size(of: name), isPlayback: false)
                }
                return
            }
        }
        reading[item] = nil
        perform(planner.learned(item, plan(of: item), at: now))
    }

    func plan(of item: Int) -> FeedPlan {
        let section = MediaPiece(Self.url(item, 2), role: .initialization)
        let segments = (0..<terms.segments).map { number in
            FeedPlan.Part(
                MediaPiece(Self.url(item, 3 + number), role: .segment),
                seconds: terms.segmentSeconds, begins: Double(number) * terms.segmentSeconds)
        }
        return FeedPlan(
            parts: [FeedPlan.Part(section, seconds: 0, begins: 0)] + segments,
            rate: terms.segmentBytes / terms.segmentSeconds)
    }

    static func url(_ item: Int, _ resource: Int) -> AbsoluteURL {
        guard let url = try? AbsoluteURL("http://cdn.test/\(item)/\(resource)") else {
            preconditionFailure("a URL of the model is none")
        }
        return url
    }
}
