// What RFC 9111 allows a cache to answer, given what it has got from its origin.
import ScenarioSupport

/// The directives of a `Cache-Control`, read leniently.
struct PeerDirectives {
    private var values: [String: String] = [:]

    init(_ text: String?) {
        for part in (text ?? "").split(separator: ",") {
            let words = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            guard let name = words.first else { continue }
            values[name.lowercased()] = words.count > 1 ? words[1].filter { $0 != "\"" } : ""
        }
    }

    subscript(name: String) -> String? { values[name] }

    /// Whether it is there without naming fields.
    func has(_ name: String) -> Bool { values[name] == "" }

    func seconds(_ name: String) -> Double? { values[name].flatMap { Double($0) } }
}

/// Judges the answers of one program to one plan; it has seen all that the program has seen.
struct PeerJudge {
    /// A departure from RFC 9111, or from the answer that was stored.
    struct Fault: Hashable {
        let kind: String
        let step: Int
        let detail: String
    }

    /// How an answer was made.
    enum Deed: String {
        case reused, stale, validated, changed, fetched, failed, own, several
    }

    /// A stored response, as its last validation left it.
    struct Stored {
        var exchange: PeerExchange
        var fields: [WireHead.Field]
        /// When it was received or validated.
        var time: Double
        /// The client's request that selects it.
        var ask: PeerAsk
        var isInvalid = false
        /// Whether it was learnt from a 304 to a client's own condition or from a response to HEAD,
        /// which a cache may pass on without storing anything.
        var isOptional = false

        subscript(name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    private var stored: [Stored] = []
    private let found = FaultList()
    private(set) var deeds: [Int: Deed] = [:]
    /// Steps at which something stored could have been reused without asking.
    private(set) var couldReuse: Set<Int> = []

    /// Seconds by which two clocks that round may differ, on a machine that is busy.
    static let slack = 5.0

    var faults: [Fault] { found.list }

    init(_ seen: [PeerObservation]) {
        for observation in seen { judge(observation) }
    }

    // MARK: One answer

    private mutating func judge(_ seen: PeerObservation) {
        let found = found
        func fault(_ kind: String, _ detail: String = "") {
            found.list.append(
                Fault(
                    kind: kind, step: seen.step,
                    detail: detail + " \(seen.answer.head.startLine)"))
        }
        let before = stored
        if before.contains(where: {
            Self.obstacles($0, among: before, seen, mayBeStale: false).isEmpty
        }) {
            couldReuse.insert(seen.step)
        }
        for exchange in seen.exchanges { learn(exchange, seen) }
        guard seen.answer.complete else { return fault("broken answer", seen.answer.broken ?? "") }
        if let made = seen.exchanges.last(where: { $0.serial == seen.serial }) {
            return judgePassed(made, seen, fault)
        }
        guard let serial = seen.serial else {
            deeds[seen.step] = seen.exchanges.contains { $0.status == 0 } ? .failed : .own
            return judgeOwn(seen, fault)
        }
        // Without a new exchange, or after a failed one.
        guard let used = before.last(where: { $0["Serial"] == "\(serial)" }) else {
            deeds[seen.step] = .reused
            return fault("an answer of another request", "Serial \(serial)")
        }
        let failed = seen.exchanges.contains { $0.status == 0 || $0.status >= 500 }
        // A validation that may not be stored, since the client says so, changes nothing stored.
        if PeerDirectives(seen.ask["Cache-Control"]).has("no-store"),
            seen.exchanges.contains(where: { $0.status == 304 })
        {
            deeds[seen.step] = .validated
            return judgeContent(used.exchange, used.fields, seen, fault)
        }
        deeds[seen.step] =
            failed ? .stale : seen.exchanges.isEmpty ? .reused : .several
        // A validated response is selected by the request that validated it and by its own one.
        let obstacles = before.filter { $0["Serial"] == "\(serial)" }
            .map { Self.obstacles($0, among: before, seen, mayBeStale: failed) }
            .min { $0.count < $1.count }
        for obstacle in obstacles ?? [] { fault("reuse: \(obstacle)", "Serial \(serial)") }
        if Self.age(used, seen) > Self.lifetime(used), !failed { deeds[seen.step] = .stale }
        judgeAge(used, seen, fault)
        judgeContent(used.exchange, used.fields, seen, fault)
    }

    /// An answer that the origin gave for this request, or that it has just validated.
    private mutating func judgePassed(
        _ made: PeerExchange, _ seen: PeerObservation, _ fault: (String, String) -> Void
    ) {
        let isClients =
            seen.ask["If-None-Match"] != nil || seen.ask["If-Modified-Since"] != nil
        switch made.status {
        case 304 where !isClients || seen.answer.status != 304: deeds[seen.step] = .validated
        case 500...: deeds[seen.step] = .failed
        default: deeds[seen.step] = made.isConditional && !isClients ? .changed : .fetched
        }
        if seen.exchanges.count > 1 { deeds[seen.step] = .several }
        guard made.status == 304 else {
            // An answer to HEAD may be given from what it has freshened.
            let isHead = seen.ask.method == "HEAD"
            return judgeContent(
                made, made.fields, seen, more: isHead ? stored.flatMap(\.fields) : [], fault)
        }
        guard let used = stored.last(where: { $0["Serial"] == "\(made.serial)" }) else {
            // A 304 to the client's own condition, with nothing stored.
            if seen.answer.status != 304 { fault("a 304 of nothing", "") }
            return
        }
        judgeContent(used.exchange, used.fields, seen, fault)
    }

    /// An answer that the program made by itself.
    func judgeOwn(_ seen: PeerObservation, _ fault: (String, String) -> Void) {
        let hasFailed = seen.exchanges.contains { $0.status == 0 || $0.status >= 500 }
        switch seen.answer.status {
        case 504 where seen.ask["Cache-Control"] == "only-if-cached": break
        case 500...504 where hasFailed: break
        // Of a stored response that it does not name.
        case 304, 416, 412: break
        case 200 where seen.ask.method == "OPTIONS": break
        default: fault("an answer of its own", "")
        }
    }

    /// The stored response that a response to HEAD may freshen, rather one that has a lifetime.
    private func freshenable(_ exchange: PeerExchange) -> Stored? {
        let known = stored.filter {
            $0.exchange.content == exchange.content && $0.ask.method == "GET"
        }
        return known.last { Self.lifetime($0) > 0 } ?? known.last
    }

    /// The fields of a stored response after a validation (section 3.2); its age is a new one.
    private static func merged(
        _ old: [WireHead.Field], _ exchange: PeerExchange
    ) -> [WireHead.Field] {
        old.filter { exchange[$0.name] == nil && $0.name != "Age" } + exchange.fields
    }

    /// What is stored after an exchange with the origin.
    private mutating func learn(_ exchange: PeerExchange, _ seen: PeerObservation) {
        let isSafe = ["GET", "HEAD", "OPTIONS", "TRACE"].contains(exchange.request.method)
        if !isSafe, (200..<400).contains(exchange.status) {
            for index in stored.indices { stored[index].isInvalid = true }
            return
        }
        guard exchange.request.method == "GET" || exchange.request.method == "HEAD" else { return }
        if exchange.status == 304 {
            let tag = exchange["ETag"]
            // What was stored before may still be used for the request that it was stored for.
            if !PeerDirectives(seen.ask["Cache-Control"]).has("no-store"),
                var fresh = stored.last(where: {
                    $0.exchange.content == exchange.content && (tag == nil || $0["ETag"] == tag)
                        && !PeerDirectives($0.ask["Cache-Control"]).has("no-store")
                })
            {
                fresh.fields = Self.merged(fresh.fields, exchange)
                fresh.time = exchange.time
                fresh.isOptional =
                    seen.ask["If-None-Match"] != nil || seen.ask["If-Modified-Since"] != nil
                fresh.isInvalid = false
                stored.append(fresh)
                fresh.ask = seen.ask
                fresh.ask.method = "GET"
                fresh.isInvalid = false
                fresh.isOptional =
                    seen.ask["If-None-Match"] != nil || seen.ask["If-Modified-Since"] != nil
                stored.append(fresh)
            }
            return
        }
        guard exchange.status > 0, exchange.status != 416 else { return }
        var ask = seen.ask
        ask.method = exchange.request.method
        var fields = exchange.fields
        var isOptional = false
        // A response to HEAD may freshen what is stored of the same version (section 4.3.5).
        if ask.method == "HEAD",
            let known = freshenable(exchange)
        {
            ask.method = "GET"
            fields = Self.merged(known.fields, exchange)
            isOptional = true
        }
        stored.append(
            Stored(
                exchange: exchange, fields: fields, time: exchange.time, ask: ask,
                isOptional: isOptional))
    }
}

/// The faults of one judgement, which closures of it add to.
private final class FaultList {
    var list: [PeerJudge.Fault] = []
}
