// The single rules: freshness, what forbids reuse, and the content and fields of an answer.
import ScenarioSupport

extension PeerJudge {
    typealias Report = (String, String) -> Void

    /// Seconds for which a response is fresh (RFC 9111 section 4.2.1).
    static func lifetime(_ stored: Stored) -> Double {
        let directives = PeerDirectives(stored["Cache-Control"])
        if let seconds = directives.seconds("s-maxage") { return seconds }
        if let seconds = directives.seconds("max-age") { return seconds }
        let date = stored["Date"].flatMap(PeerCondition.seconds)
        guard let date else { return 0 }
        if let expires = stored["Expires"] {
            return PeerCondition.seconds(expires).map { Double($0 - date) } ?? 0
        }
        // A tenth of the time since the last change is what all caches here take at most.
        let heuristic = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
        guard heuristic.contains(stored.exchange.status) || directives.has("public"),
            let changed = stored["Last-Modified"].flatMap(PeerCondition.seconds)
        else { return 0 }
        return Double(date - changed) / 10
    }

    /// The age of a response when an answer was made of it (section 4.2.3).
    static func age(_ stored: Stored, _ seen: PeerObservation) -> Double {
        (stored["Age"].flatMap { Double($0) } ?? 0) + max(0, seen.time - stored.time)
    }

    /// What forbids the use of a stored response, or what the client wishes against it.
    static func obstacles(
        _ stored: Stored, among all: [Stored], _ seen: PeerObservation, mayBeStale: Bool
    ) -> [String] {
        let response = PeerDirectives(stored["Cache-Control"])
        let request = PeerDirectives(seen.ask["Cache-Control"])
        var found: [String] = []
        func add(_ word: String, if isSo: Bool) { if isSo { found.append(word) } }
        add("another method", if: !["GET", "HEAD"].contains(seen.ask.method))
        add("stored for HEAD", if: stored.ask.method == "HEAD" && seen.ask.method == "GET")
        add("invalidated", if: stored.isInvalid)
        add("no-store", if: response.has("no-store"))
        add("request no-store", if: PeerDirectives(stored.ask["Cache-Control"]).has("no-store"))
        add("private", if: response.has("private"))
        let isPublic =
            response.has("public") || response.has("must-revalidate")
            || response["s-maxage"] != nil
        add("authorization", if: stored.ask["Authorization"] != nil && !isPublic)
        add("vary", if: !isSelected(stored, seen.ask))
        add("superseded", if: isSuperseded(stored, all, seen.ask))
        // A choice of Conformance.md: s-maxage leaves what the same field states of stale use.
        let states = response["stale-if-error"] ?? response["stale-while-revalidate"]
        let isBound =
            response.has("must-revalidate") || response.has("proxy-revalidate")
            || response["s-maxage"] != nil && states == nil
        add("no-cache", if: response.has("no-cache"))
        let age = age(stored, seen)
        let lifetime = lifetime(stored)
        let isStale = age > lifetime + slack
        if mayBeStale {
            add("stale in spite of must-revalidate", if: isStale && isBound)
        } else {
            let tolerated = request["max-stale"].map { Double($0) ?? .infinity } ?? 0
            add("stale", if: isStale && (isBound || age > lifetime + tolerated + slack))
            add("request no-cache", if: request.has("no-cache"))
            if let most = request.seconds("max-age") {
                add("request max-age", if: age > most + slack)
            }
            if let rest = request.seconds("min-fresh") {
                add("request min-fresh", if: lifetime - age < rest - slack)
            }
        }
        return found
    }

    /// Whether a request selects a stored response (section 4.1).
    private static func isSelected(_ stored: Stored, _ ask: PeerAsk) -> Bool {
        guard let vary = stored["Vary"] else { return true }
        return vary.split(separator: ",").map { String($0.drop { $0 == " " }) }.allSatisfy { name in
            if name == "*" { return false }
            if name == "Accept-Encoding" {
                return (stored.ask[name]?.contains("br") == true)
                    == (ask[name]?.contains("br") == true)
            }
            return stored.ask[name] == ask[name]
        }
    }

    /// Whether a later response that may be stored takes its place.
    private static func isSuperseded(_ stored: Stored, _ all: [Stored], _ ask: PeerAsk) -> Bool {
        guard let place = all.lastIndex(where: { $0["Serial"] == stored["Serial"] })
        else { return false }
        return all[(place + 1)...].contains { later in
            let directives = PeerDirectives(later["Cache-Control"])
            return later.ask.method == "GET" && !later.isOptional && later.exchange.status < 500
                && later.exchange.status != 206 && isSelected(later, ask)
                && later.ask["Accept-Encoding"] == stored.ask["Accept-Encoding"]
                && !directives.has("no-store") && !directives.has("private")
                && !PeerDirectives(later.ask["Cache-Control"]).has("no-store")
                && (later.ask["Authorization"] == nil || directives.has("public"))
                && lifetime(later) > 0
        }
    }

    // MARK: Content

    func judgeAge(_ stored: Stored, _ seen: PeerObservation, _ fault: Report) {
        guard let age = seen.answer["Age"].flatMap({ Double($0) }) else {
            return fault("Age missing", "")
        }
        let expected = Self.age(stored, seen)
        if abs(age - expected) > Self.slack { fault("Age wrong", "\(age), not \(expected)") }
    }

    /// Holds an answer against the response that it is made of.
    func judgeContent(
        _ made: PeerExchange, _ fields: [WireHead.Field], _ seen: PeerObservation,
        more: [WireHead.Field] = [], _ fault: Report
    ) {
        let answer = seen.answer
        guard seen.ask.method == "GET" || seen.ask.method == "HEAD" else {
            if answer.status != made.status { fault("another status", "not \(made.status)") }
            return
        }
        if made.status >= 500, made.content.isEmpty || answer.status == made.status { return }
        func field(_ name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
        let isUnchanged = PeerCondition.isUnchanged(
            none: seen.ask["If-None-Match"], since: seen.ask["If-Modified-Since"],
            tag: field("ETag"), date: field("Last-Modified"))
        let whole = Array(made.content.utf8)
        let part =
            PeerCondition.mayApply(
                seen.ask["If-Range"], tag: field("ETag"), date: field("Last-Modified"))
            ? seen.ask["Range"].map { WireRange.parse($0, length: whole.count) } ?? .ignored
            : .ignored
        switch answer.status {
        case 304:
            if !isUnchanged { fault("304 for what has changed", "") }
        case 416:
            if part != .unsatisfiable { fault("416 for a range that is there", "") }
        case 206:
            guard seen.ask.method == "GET" else { return fault("206 to HEAD", "") }
            if answer["Content-Type"]?.hasPrefix("multipart/") == true { return }
            guard case .part(let range) = part else { return fault("206 for no range", "") }
            let told = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(whole.count)"
            if answer["Content-Range"] != told { fault("another Content-Range", "") }
            if !isSame(answer.body, Array(whole[range])) { fault("wrong bytes of a part", "") }
            judgeFields(fields, seen, more, fault)
        default:
            let stored = [206, 304, 416].contains(made.status) ? 200 : made.status
            if answer.status != stored { return fault("another status", "not \(stored)") }
            if isUnchanged, stored == 200, made.status == 304 || seen.exchanges.isEmpty {
                fault("200 for what is unchanged", "")
            }
            if seen.ask.method == "GET", !isSame(answer.body, whole) {
                fault("wrong bytes", String(answer.text.prefix(60)))
            }
            judgeFields(fields, seen, more, fault)
        }
    }

    /// Fields that each server writes by itself.
    private static let own: Set<String> = [
        "accept-ranges", "age", "cache-status", "connection", "content-length", "content-range",
        "date", "keep-alive", "proxy-status", "server", "transfer-encoding", "via", "x-varnish",
    ]

    private func judgeFields(
        _ fields: [WireHead.Field], _ seen: PeerObservation, _ more: [WireHead.Field],
        _ fault: Report
    ) {
        let hidden = PeerDirectives(
            fields.first { $0.name == "Cache-Control" }?.value)
        for field in fields where !Self.own.contains(field.name.lowercased()) {
            let value = seen.answer[field.name]
            guard value != field.value else { continue }
            // A field that a directive names need not be sent again.
            if value == nil, hidden["no-cache"] == field.name || hidden["private"] == field.name {
                continue
            }
            fault(
                value == nil ? "\(field.name) missing" : "\(field.name) changed",
                "\(value ?? "-"), not \(field.value)")
        }
        let known = Set((fields + more).map { $0.name.lowercased() })
        for field in seen.answer.fields {
            let name = field.name.lowercased()
            // What an earlier response said and its validation did not.
            let isOlder = ["content-type", "x-version", "set-cookie", "content-encoding"]
            if !known.contains(name), !Self.own.contains(name), !isOlder.contains(name) {
                fault("\(field.name) added", field.value)
            }
        }
    }
}
