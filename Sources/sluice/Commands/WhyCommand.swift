import ArgumentParser
import HTTP

/// `sluice why`: the complete current decision for a URL.
struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why", abstract: "Explain how the daemon would answer a URL, and why.",
        discussion: """
            Shows key and rules, what is stored, age and lifetime, and what the next request would do, by the \
            names that Cache-Status, the access log and the counters use.
            """)

    @Argument(
        help:
            "The origin's URL, or the daemon's link for it; headers may follow as in Kodi, URL|Name=value&Name=value."
    )
    var url: String

    @OptionGroup var place: StoreOptions

    @Flag(help: "Print the daemon's JSON.")
    var json = false

    func run() throws {
        let target = "/api/why?\(daemonQuery([("url", url)]))"
        try place.printReport(target, asJSON: json) { (report: WhyText) in report.lines }
    }
}

/// The report, decoded for printing as text.
struct WhyText: Decodable {
    struct Named: Decodable {
        let name: String
        let from: String
    }

    struct Step: Decodable {
        let rule: String
        let from: String
        let took: String
    }

    struct Key: Decodable {
        let text: String
        let digest: String
        let mode: String
        let steps: [Step]
        let veto: String?
    }

    struct Stored: Decodable {
        let status: Int
        let complete: Bool
        let total: Int64?
        let present: Int64
        let spans: [[Int64]]
        let filling: Bool
        let lacks: [String]?
        let title: String
        let pinned: Bool
        let etag: String?
        let lastModified: String?
        let cacheControl: String?
        let vary: String?

        enum CodingKeys: String, CodingKey {
            case status, complete, total, present, spans, filling, lacks, title, pinned, etag
            case lastModified = "last-modified"
            case cacheControl = "cache-control"
            case vary
        }
    }

    struct Refused: Decodable {
        let reason: String
        let status: Int
        let secondsAgo: Int64

        enum CodingKeys: String, CodingKey {
            case reason, status
            case secondsAgo = "seconds-ago"
        }
    }

    struct Freshness: Decodable {
        let age: Int64
        let lifetime: Int64
        let lifetimeFrom: String
        let counts: Bool
        let live: Bool?
        let reuseMilliseconds: Int64?
        let fresh: Bool
        let reason: String?
        let seconds: Int64?
        let mayServeStale: Bool

        enum CodingKeys: String, CodingKey {
            case age, lifetime, counts, live, fresh, reason
            case lifetimeFrom = "lifetime-from"
            case reuseMilliseconds = "reuse-ms"
            case seconds = "for"
            case mayServeStale = "may-serve-stale"
        }
    }

    struct Origin: Decodable {
        let state: String
        let reason: String
        let seconds: Int64
    }

    /// The state in live lists: of a list if `reading` is there, otherwise of a name.
    struct Live: Decodable {
        let epoch: Int
        let reading: String?
        let first: Int?
        let last: Int?
        let readAgo: Int?
        let givenAgain: Int?
        let current: Int?
        let namedAgo: Int?
        let announced: Bool?
        let grows: Bool?

        enum CodingKeys: String, CodingKey {
            case epoch, reading, first, last, current, announced, grows
            case readAgo = "read-ago"
            case givenAgain = "given-again"
            case namedAgo = "named-ago"
        }

        var text: String {
            if let reading, let first, let last, let readAgo {
                let again = givenAgain.map { $0 > 0 ? ", \($0) reused names" : "" } ?? ""
                return "\(reading): \(first) to \(last), read \(readAgo) s ago, epoch \(epoch)"
                    + again
            }
            var text = "epoch \(epoch)"
            if let current, current != epoch { text += ", the name is in \(current) now" }
            if let namedAgo { text += ", named since \(namedAgo) s" }
            if announced == true { text += ", announced" }
            if grows == true { text += ", growing" }
            return text
        }
    }

    /// The extent of the list that a session with an extended window gets.
    struct Window: Decodable {
        let first: Int
        let segments: Int
        let behindOrigin: Int
        let missing: Int
        let epoch: Int
        let ended: Bool

        enum CodingKeys: String, CodingKey {
            case first, segments, missing, epoch, ended
            case behindOrigin = "behind-origin"
        }

        var text: String {
            "from \(first) on: \(segments) segments, \(behindOrigin) of them before the origin's"
                + " window, \(missing) missing, epoch \(epoch)" + (ended ? ", ended" : "")
        }
    }

    /// A body that is arriving and has no known end.
    struct Endless: Decodable {
        let stage: String
        let format: String
        let seconds: Int64
        let viewers: Int
        let kept: Int64

        var text: String {
            let what = stage == "endless" ? "without an end" : "not known yet whether it ends"
            return "\(what), \(format), arriving for \(seconds) s, viewers: \(viewers), "
                + "\(kept) bytes kept"
        }
    }

    struct Next: Decodable {
        let outcome: String
        let what: String
        /// Nil from a daemon of version 0.4.
        let plan: String?
    }

    let url: String
    let place: String
    let role: String?
    let policy: Named
    let key: Key
    let stored: Stored?
    let refused: Refused?
    let origin: Origin?
    let live: Live?
    let window: Window?
    let endless: Endless?
    let freshness: Freshness?
    let next: Next

    /// One fact a line, starting with its name.
    var lines: [String] { facts.map { factLine($0, $1) } }

    /// A name and what is said of it.
    private typealias Fact = (String, String)

    private var facts: [Fact] {
        var facts: [Fact] = [
            ("url", url), ("place", place + (role.map { ", \($0)" } ?? "")),
            ("policy", "\(policy.name) (\(policy.from))"), ("key", key.text),
            ("digest", key.digest),
        ]
        let veto = key.veto.map { ", not merging: \($0) was seen at this origin" }
        facts.append(("rules", key.mode + (veto ?? "")))
        facts += key.steps.map { ("", "\($0.rule) (\($0.from)): \($0.took)") }
        facts += storedFacts
        if let refused {
            let when = "\(refused.secondsAgo) s ago"
            facts.append(("not stored", "\(refused.reason), status \(refused.status), \(when)"))
        }
        if let origin {
            facts.append(("origin", "\(origin.state) for \(origin.seconds) s: \(origin.reason)"))
        }
        if let live { facts.append(("live", live.text)) }
        if let window { facts.append(("window", window.text)) }
        if let endless { facts.append(("stream", endless.text)) }
        facts += freshnessFacts
        facts.append(("next", "\(next.outcome): \(next.what)"))
        if let plan = next.plan { facts.append(("plan", plan)) }
        return facts
    }

    private var storedFacts: [Fact] {
        guard let stored else { return [("stored", "no")] }
        let total = stored.total.map(String.init) ?? "an unknown number"
        let how = stored.complete ? "whole" : stored.filling ? "being filled" : "in part"
        let size = "\(stored.present) of \(total) bytes"
        var facts: [Fact] = [("stored", "\(how): \(size), status \(stored.status)")]
        if !stored.complete {
            let spans = stored.spans.map { "\($0[0])..<\($0[1])" }.joined(separator: " ")
            facts.append(("spans", spans.isEmpty ? "none" : spans))
        }
        if let lacks = stored.lacks, !lacks.isEmpty {
            facts.append(("lacking", "some of what it names, at \(lacks.joined(separator: ", "))"))
        }
        facts.append(("title", stored.title + (stored.pinned ? ", pinned" : "")))
        let validators = [stored.etag, stored.lastModified].compactMap { $0 }
        facts.append(
            ("validators", validators.isEmpty ? "none" : validators.joined(separator: ", ")))
        if let control = stored.cacheControl { facts.append(("control", control)) }
        if let vary = stored.vary { facts.append(("vary", vary)) }
        return facts
    }

    private var freshnessFacts: [Fact] {
        guard let freshness else { return [] }
        let source =
            freshness.counts ? freshness.lifetimeFrom : "HTTP's lifetime is ignored here"
        var state = freshness.fresh ? "fresh" : "stale: \(freshness.reason ?? "")"
        if let seconds = freshness.seconds { state += ", \(seconds) s left" }
        if freshness.live == true, let reuse = freshness.reuseMilliseconds {
            state += ", live list reused for \(reuse) ms"
        }
        return [
            ("age", "\(freshness.age) s of \(freshness.lifetime) s (\(source))"),
            ("freshness", state),
            ("on error", freshness.mayServeStale ? "may be served stale" : "may not be served"),
        ]
    }
}
