import Posix
import URISyntax

/// The host names in use, which are looked up again before their addresses expire in libcurl.
///
/// Pure: uses and lookup results go in; names to look up and addresses for libcurl come out.
struct NamesInUse {
    private struct Entry {
        var usedAt: Monotonic
        /// The latest attempt, or the first use, when libcurl looks the name up itself.
        var triedAt: Monotonic
        /// When the addresses were found.
        var foundAt: Monotonic
        var addresses: [String] = []
        /// Grows with each result that must be passed to libcurl.
        var generation = 0
        /// The generation that each set of connections has received, by `ConnectionKind.rawValue`.
        var handed = SIMD4<Int>()
    }

    /// How long libcurl keeps addresses.
    private let life: Interval
    private var entries: [Origin: Entry] = [:]

    private static let most = 256
    /// Addresses are used for this long while the resolver fails (compare RFC 8767).
    private static let longestStale = Interval.seconds(3_600 as Int64)

    init(life: Interval) { self.life = life }

    private var half: Interval { Interval(nanoseconds: life.nanoseconds / 2) }
    /// The interval of checking for due names.
    var turn: Interval { Interval(nanoseconds: max(life.nanoseconds / 8, 50_000_000)) }

    /// Records the use of a name by a transfer over a set of connections.
    ///
    /// - Returns: an entry for CURLOPT_RESOLVE(3), if these connections do not have the current
    ///   addresses.
    mutating func use(_ origin: Origin, over kind: ConnectionKind, now: Monotonic) -> String? {
        if AddressPolicy.isAddress(origin.host) { return nil }
        guard var entry = entries[origin] else {
            add(origin, now: now)
            return nil
        }
        if now - entry.triedAt > life {
            // It was out of use, so libcurl looks it up.
            entry = Entry(usedAt: now, triedAt: now, foundAt: now)
        }
        entry.usedAt = now
        defer { entries[origin] = entry }
        guard entry.handed[kind.rawValue] != entry.generation, !entry.addresses.isEmpty else {
            return nil
        }
        entry.handed[kind.rawValue] = entry.generation
        let list = entry.addresses.map { $0.utf8.contains(0x3A) ? "[\($0)]" : $0 }
        // With the plus sign they expire like those that libcurl looked up itself.
        return "+\(origin.host):\(origin.port):\(list.joined(separator: ","))"
    }

    private mutating func add(_ origin: Origin, now: Monotonic) {
        if entries.count >= Self.most { entries = entries.filter { now - $0.value.usedAt <= life } }
        guard entries.count < Self.most else { return }
        entries[origin] = Entry(usedAt: now, triedAt: now, foundAt: now)
    }

    /// Records the peer of a new connection: an address to keep if the first lookup fails.
    mutating func connected(_ origin: Origin, to address: String, now: Monotonic) {
        guard entries[origin]?.addresses.isEmpty == true else { return }
        entries[origin]?.addresses = [address]
        entries[origin]?.foundAt = now
    }

    /// Returns the hosts to look up now: those used since their latest lookup, half of whose
    /// address lifetime has passed.
    mutating func due(now: Monotonic) -> [String] {
        var hosts: Set<String> = []
        for (origin, entry) in entries
        where now - entry.triedAt >= half && entry.usedAt >= entry.triedAt {
            entries[origin]?.triedAt = now
            hosts.insert(origin.host)
        }
        return hosts.sorted()
    }

    /// Sets the result of a lookup; nil if it failed: the former addresses then stay in use.
    mutating func take(_ addresses: [String]?, of host: String, now: Monotonic) {
        for (origin, entry) in entries where origin.host == host {
            var entry = entry
            entry.triedAt = now
            if let addresses, !addresses.isEmpty {
                entry.addresses = addresses
                entry.foundAt = now
            } else if now - entry.foundAt > Self.longestStale {
                entry.addresses = []
            }
            entry.generation += 1
            entries[origin] = entry
        }
    }

    /// True if any name was used within the lifetime of its addresses.
    func areInUse(now: Monotonic) -> Bool {
        entries.values.contains { now - $0.usedAt <= life }
    }
}
