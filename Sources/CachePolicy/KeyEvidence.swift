// Learns from responses which query parameters change the bytes and which never do.
import Numbers
package import URISyntax

/// The identity of one response: strong validator, length, and a digest of bytes of the body.
package struct KeyFingerprint: Hashable, Sendable {
    package let validator: UInt64
    package let length: Int64
    /// The digest of the first and the last block.
    package let content: UInt64

    package init(validator: UInt64, length: Int64, content: UInt64) {
        self.validator = validator
        self.length = length
        self.content = content
    }
}

/// Evidence about the parameters of all origins, bounded in memory: 4,096 responses, 128 origins
/// with 32 names each.
///
/// Two URLs with equal path and equal response are evidence for dropping every parameter in which
/// they differ. Two URLs with different responses that differ in only one parameter, or only in
/// proposed ones, veto these parameters permanently.
package struct KeyEvidence: Sendable {
    /// The evidence about one parameter of one origin.
    package struct Finding: Hashable, Sendable {
        package enum State: String, Sendable {
            /// Not enough evidence.
            case gathering
            /// Enough evidence to propose dropping it, and to drop it where that is allowed.
            case proposed
            /// Selects content: one counter-example is enough.
            case vetoed
        }

        /// The number of pairs of URLs with different values and equal bytes.
        package var pairs: UInt32 = 0
        /// The paths of these pairs, as short digests; at most eight are distinguished.
        package var paths: [UInt32] = []
        package var isVetoed = false

        package init() {}

        package var state: State {
            if isVetoed { return .vetoed }
            return pairs >= KeyEvidence.leastPairs && paths.count >= KeyEvidence.leastPaths
                ? .proposed : .gathering
        }
    }

    /// The pairs required for a proposal.
    package static let leastPairs: UInt32 = 4
    /// The different paths required for a proposal.
    package static let leastPaths = 3
    private static let mostNames = 32
    private static let mostOrigins = 128
    private static let mostParameters = 16

    /// Names that select content everywhere; no evidence is collected for them.
    private static let choosing: [KeyGlob] = [
        "id", "*_id", "*Id", "*ID", "seg*", "part*", "chunk*", "frag*", "start*", "end*", "range*",
        "byte*", "offset*", "length", "len", "from", "to", "time*", "duration", "pos*", "page*",
        "seq*", "index", "num*", "n", "q", "quality*", "bitrate*", "bw*", "rate", "w", "h", "width",
        "height", "size", "res*", "lang*", "audio*", "video*", "sub*", "track*", "format", "fmt",
        "type", "codec*", "v", "ver*", "rev*", "file*", "name", "path", "url", "src", "target",
        "channel*", "stream*", "variant*", "level", "profile", "layer", "key", "iv", "kid", "fn",
        "_HLS_*", "response-*",
    ].map { KeyGlob($0) }

    private struct Value: Sendable {
        let name: String
        let value: UInt64
    }

    /// Per origin (scheme, host, port): name to finding.
    private var findings: [String: [String: Finding]] = [:]
    /// True if the current response has changed the state of a finding or created one.
    private var hasNews = false
    private var samples = RecentMap<UInt64, [Value]>(capacity: 4_096)
    private var rests = RecentMap<UInt64, (name: UInt64, fingerprint: KeyFingerprint)>(
        capacity: 8_192)

    package init() {}

    /// Learns from a response.
    ///
    /// - Parameters:
    ///   - url: the requested URL.
    ///   - fingerprint: the identity of the response.
    /// - Returns: The origin whose findings changed their state; nil if none did.
    package mutating func learn(_ url: AbsoluteURL, _ fingerprint: KeyFingerprint) -> String? {
        let items = KeyMaker.items(of: url)
        guard !items.isEmpty, items.count <= Self.mostParameters else { return nil }
        let origin = url.origin.description
        let path = url.pathRange.isEmpty ? [0x2F] : url.bytes[url.pathRange]
        var hash = FNV1a()
        hash.take(origin.utf8.span)
        hash.take(path.span)
        let place = Self.mix(hash.value, 0)
        let values = items.map { Value(name: $0.nameText, value: Self.hash($0.raw.span)) }
            .sorted { $0.name == $1.name ? $0.value < $1.value : $0.name < $1.name }
        hasNews = false
        support(origin, place, values, fingerprint)
        oppose(origin, place, values, fingerprint)
        return hasNews ? origin : nil
    }

    /// Counts equal bytes with different values as evidence for every name that differs.
    private mutating func support(
        _ origin: String, _ place: UInt64, _ values: [Value], _ fingerprint: KeyFingerprint
    ) {
        var hasher = Self.mix(place, fingerprint.validator)
        hasher = Self.mix(hasher, UInt64(bitPattern: fingerprint.length))
        hasher = Self.mix(hasher, fingerprint.content)
        if let known = samples[hasher], known.map(\.name) == values.map(\.name) {
            for (old, new) in zip(known, values) where old.value != new.value {
                find(origin, new.name) { finding in
                    finding.pairs &+= 1
                    let path = UInt32(truncatingIfNeeded: place)
                    if finding.paths.count < 8, !finding.paths.contains(path) {
                        finding.paths.append(path)
                    }
                }
            }
        }
        samples[hasher] = values
    }

    /// Vetoes a name if other bytes came with only its value changed, and all proposed names if
    /// other bytes came with only their values changed.
    private mutating func oppose(
        _ origin: String, _ place: UInt64, _ values: [Value], _ fingerprint: KeyFingerprint
    ) {
        for (index, one) in values.enumerated() {
            var rest = Self.mix(place, Self.hash(one.name))
            for (other, value) in values.enumerated() where other != index {
                rest = Self.mix(rest, value.value)
            }
            if let known = rests[rest], known.name != one.value, known.fingerprint != fingerprint {
                find(origin, one.name) { $0.isVetoed = true }
            }
            rests[rest] = (one.value, fingerprint)
        }
        let spokenFor = findings[origin] == nil ? [] : proposed(for: origin)
        guard !spokenFor.isEmpty, values.contains(where: { spokenFor.contains($0.name) }) else {
            return
        }
        var rest = Self.mix(place, 1)
        var dropped: UInt64 = 2
        for value in values {
            if spokenFor.contains(value.name) {
                dropped = Self.mix(dropped, value.value)
            } else {
                rest = Self.mix(rest, value.value)
            }
        }
        if let known = rests[rest], known.name != dropped, known.fingerprint != fingerprint {
            for value in values where spokenFor.contains(value.name) {
                find(origin, value.name) { $0.isVetoed = true }
            }
        }
        rests[rest] = (dropped, fingerprint)
    }

    private mutating func find(
        _ origin: String, _ name: String, _ change: (inout Finding) -> Void
    ) {
        let bytes = Array(name.utf8)[...]
        guard !Self.choosing.contains(where: { $0.matches(bytes) }) else { return }
        if findings[origin] == nil, findings.count >= Self.mostOrigins { return }
        let former = findings[origin]?[name]
        if former == nil,
            (findings[origin]?.count ?? 0) >= Self.mostNames || name.utf8.count > 64
        {
            return
        }
        var finding = former ?? Finding()
        change(&finding)
        findings[origin, default: [:]][name] = finding
        hasNews = hasNews || finding.state != former?.state
    }

    // MARK: Results

    /// Returns the proposed names of an origin, sorted.
    package func proposed(for origin: String) -> [String] {
        (findings[origin] ?? [:]).filter { $0.value.state == .proposed }.keys.sorted()
    }

    /// All findings, by origin and name.
    package var all: [(origin: String, name: String, finding: Finding)] {
        findings.sorted { $0.key < $1.key }.flatMap { origin, names in
            names.sorted { $0.key < $1.key }.map { (origin, $0.key, $0.value) }
        }
    }

    /// Forgets the findings of an origin, including vetoes.
    package mutating func forget(_ origin: String) { findings[origin] = nil }

    /// Vetoes a parameter.
    ///
    /// - Returns: its finding; nil if there is none.
    package mutating func refuse(_ name: String, of origin: String) -> Finding? {
        guard var finding = findings[origin]?[name] else { return nil }
        finding.isVetoed = true
        findings[origin]?[name] = finding
        return finding
    }

    // MARK: Saving

    /// The finding of a parameter, with its name.
    package typealias Named = (name: String, finding: Finding)

    /// Returns the findings of one origin, sorted by name.
    package func findings(of origin: String) -> [Named] {
        (findings[origin] ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Restores a finding of an earlier run, if there is room.
    package mutating func restore(_ finding: Finding, of name: String, origin: String) {
        guard findings[origin] != nil || findings.count < Self.mostOrigins,
            (findings[origin]?.count ?? 0) < Self.mostNames
        else { return }
        var finding = finding
        finding.paths = Array(finding.paths.prefix(8))
        findings[origin, default: [:]][name] = finding
    }

    // MARK: Digests

    /// Returns the 64-bit FNV-1a hash with a final mixing step.
    ///
    /// The table is small and drops old entries, and a collision can only add to evidence that one
    /// counter-example removes. Takes a span and not any sequence, which other modules would
    /// iterate through witness tables, at hundreds of instructions a byte.
    package static func hash(_ bytes: Span<UInt8>) -> UInt64 {
        var hash = FNV1a()
        hash.take(bytes)
        return mix(hash.value, 0)
    }

    /// Returns `hash` of the UTF-8 bytes of a text.
    package static func hash(_ text: String) -> UInt64 { hash(text.utf8.span) }

    /// Returns a digest of a block of a body, eight bytes a step, since it runs for every miss with
    /// a query.
    ///
    /// Not stored across restarts.
    package static func digest(_ block: Span<UInt8>) -> UInt64 {
        var value = FNV1a().value
        var index = 0
        while index &+ 8 <= block.count {
            value = (value ^ EightBytes.load(block, at: index)) &* 0x9E37_79B9_7F4A_7C15
            value ^= value &>> 32
            index &+= 8
        }
        var hash = FNV1a(from: value)
        while index < block.count {
            hash.take(block[index])
            index &+= 1
        }
        return mix(hash.value, UInt64(block.count))
    }

    private static func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
        var value = (a ^ (b &* 0x9E37_79B9_7F4A_7C15)) &+ 0x9E37_79B9_7F4A_7C15
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
