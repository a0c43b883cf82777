// Replays a trace against a policy, as if for a store of a given size.
package import Retention

/// The result of a replay.
package struct ReplayResult: Sendable, Equatable {
    package var requests = 0
    package var hits = 0
    package var bytes: Int64 = 0
    package var hitBytes: Int64 = 0
    package var evictions = 0

    package init() {}

    /// The share of requests answered from the store, 0 to 1.
    package var hitRatio: Double { requests == 0 ? 0 : Double(hits) / Double(requests) }
    /// The share of bytes answered from the store, 0 to 1.
    package var byteHitRatio: Double { bytes == 0 ? 0 : Double(hitBytes) / Double(bytes) }
}

/// The accounting of a store without its data: capacity, objects, evictions.
///
/// Objects are kept whole or not at all; one that the daemon keeps in parts counts with its size.
package struct Replay {
    private let policy: any RetentionPolicy
    private let capacity: Int64
    private var kept: [UInt128: Int64] = [:]
    private var used: Int64 = 0
    package private(set) var result = ReplayResult()

    package init(policy: any RetentionPolicy, capacity: Int64) {
        self.policy = policy
        self.capacity = capacity
    }

    /// Replays a whole trace; its first part, of `warmUp` in 0...1, is not counted.
    package static func run(
        _ trace: [TraceRequest], policy: RetentionPolicyName, capacity: Int64, warmUp: Double = 0
    ) -> ReplayResult {
        var replay = Replay(policy: policy.makePolicy(capacity: capacity), capacity: capacity)
        let uncounted = Int(Double(trace.count) * min(max(warmUp, 0), 1))
        for (number, request) in trace.enumerated() {
            if number == uncounted { replay.result = ReplayResult() }
            replay.step(request)
        }
        return replay.result
    }

    /// Processes the next request.
    package mutating func step(_ request: TraceRequest) {
        let isKept = kept[request.name] != nil
        if !request.isAhead { count(request, isHit: isKept) }
        if isKept {
            if !request.isAhead {
                policy.touch(request.name, now: request.time)
            }
            return
        }
        guard request.size <= capacity, makeRoom(for: request) else { return }
        kept[request.name] = request.size
        used += request.size
        policy.insert(
            request.name,
            Retained(
                bytes: request.size, title: request.title, kind: request.kind,
                isRead: !request.isAhead, lastUsed: request.time, uses: request.isAhead ? 0 : 1))
    }

    private mutating func count(_ request: TraceRequest, isHit: Bool) {
        result.requests += 1
        result.bytes += request.length
        guard isHit else { return }
        result.hits += 1
        result.hitBytes += request.length
    }

    private mutating func makeRoom(for request: TraceRequest) -> Bool {
        while used + request.size > capacity {
            guard let victim = policy.nextVictim(now: request.time, isBarred: { _ in false }),
                let size = kept.removeValue(forKey: victim)
            else { return false }
            used -= size
            result.evictions += 1
        }
        return true
    }
}
