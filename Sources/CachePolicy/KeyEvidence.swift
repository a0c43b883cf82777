// What responses taught about parameters: which never change the bytes, and which do.
import Numbers
package import URISyntax

/// What one response is known by: strong validator, length, and a digest of bytes of the body.
package struct KeyFingerprint: Hashable, Sendable {
    package let validator: UInt64
    package let length: Int64
    /// Of the first and the last block.
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
/// Two URLs with equal path and equal response speak for every parameter in which they differ; two
/// with different responses that differ in one parameter only, or only in parameters that were
/// spoken for, speak against these, for good.
package struct KeyEvidence: Sendable {
    /// What is known of one parameter of one origin.
    package struct Finding: Hashable, Sendable {
        package enum State: String, Sendable {
            /// Too little to go by.
            case gathering
            /// Enough to propose, and to apply where that is allowed.
            case proposed
            /// Chooses content: one counter-example is enough.
            case vetoed
        }

        /// Pairs of URLs with other values and equal bytes.
        package var pairs: UInt32 = 0
        /// Paths on which that was seen, as short digests; no more than eight are told apart.
        package var paths: [UInt32] = []
        package var isVetoed = false

        package init() {}

        package var state: State {
            if isVetoed { return .vetoed }
            return pairs >= KeyEvidence.leastPairs && paths.count >= KeyEvidence.leastPaths
                ? .proposed : .gathering
        }
    }

    /// Pairs that make a proposal.
    package static let leastPairs: UInt32 = 4
    /// Different paths that make a proposal.
    package static let leastPaths = 3
    private static let mostNames = 32
    private static let mostOrigins = 128
    private static let mostParameters = 16

    /// Names that choose content wherever they are used; nothing is learnt of them.
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
    /// Whether the response that is taken in has changed the state of a finding, or made one.
    private var hasNews = false
    private var samples = RecentMap<UInt64, [Value]>(capacity: 4_096)
    private var rests = RecentMap<UInt64, (name: UInt64, fingerprint: KeyFingerprint)>(
        capacity: 8_192)

    package init() {}

    /// Takes in a response.
    ///
    /// - Parameters:
    ///   - url: what was asked for.
    ///   - fingerprint: what came.
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

    /// Equal bytes under other values speak for every name that differs.
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

    /// Other bytes with one other value speak against that name; other bytes where nothing differs
    /// but what was spoken for speak against all of that.
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

    /// Names of an origin that never changed the bytes, in order.
    package func proposed(for origin: String) -> [String] {
        (findings[origin] ?? [:]).filter { $0.value.state == .proposed }.keys.sorted()
    }

    /// All that is known, by origin and name.
    package var all: [(origin: String, name: String, finding: Finding)] {
        findings.sorted { $0.key < $1.key }.flatMap { origin, names in
            names.sorted { $0.key < $1.key }.map { (origin, $0.key, $0.value) }
        }
    }

    /// Forgets what is known of an origin, vetoes included.
    package mutating func forget(_ origin: String) { findings[origin] = nil }

    // MARK: Keeping

    /// What is known of a parameter, by its name.
    package typealias Named = (name: String, finding: Finding)

    /// The findings of one origin, in the order of names.
    package func findings(of origin: String) -> [Named] {
        (findings[origin] ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Takes in a finding of an earlier run, where there is room.
    package mutating func restore(_ finding: Finding, of name: String, origin: String) {
        guard findings[origin] != nil || findings.count < Self.mostOrigins,
            (findings[origin]?.count ?? 0) < Self.mostNames
        else { return }
        var finding = finding
        finding.paths = Array(finding.paths.prefix(8))
        findings[origin, default: [:]][name] = finding
    }

    // MARK: Digests

    /// FNV-1a of 64 bits, finished with a shuffle: the table is small and forgets, and a collision
    /// can only add to evidence that one counter-example takes away.
    ///
    /// Of a span and not of any sequence, which other modules would walk through witness tables, at
    /// hundreds of instructions a byte.
    package static func hash(_ bytes: Span<UInt8>) -> UInt64 {
        var hash = FNV1a()
        hash.take(bytes)
        return mix(hash.value, 0)
    }

    /// As `hash` of the UTF-8 bytes of a text.
    package static func hash(_ text: String) -> UInt64 { hash(text.utf8.span) }

    /// Of a block of a body: eight bytes a step, since every miss with a query takes one.
    ///
    /// Not kept across restarts.
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
