// Tries a stream through a daemon, for `sluice doctor`.
import CommandSupport
import Diagnosis
import HLS
import HTTP
import URISyntax

/// Stands for the proxy in front of a daemon: removes the base path from the URLs of requests.
struct FrontProxy {
    /// The base URL of players, with the base path.
    let base: String
    /// A PEM file of an authority that is trusted besides the system's; nil for none.
    let authority: String?
    private let basePath: String
    private let origin: Origin?

    init(_ daemon: FoundDaemon) {
        base = daemon.base + daemon.basePath
        authority = daemon.authority
        basePath = daemon.basePath
        origin = (try? AbsoluteURL(daemon.base))?.origin
    }

    /// Returns a URL of players as the daemon is asked for it: without the base path.
    func target(of url: AbsoluteURL) -> AbsoluteURL {
        let start = url.pathRange.lowerBound
        guard !basePath.isEmpty, url.bytes[start...].starts(with: "\(basePath)/".utf8),
            url.origin == origin
        else { return url }
        var bytes = url.bytes
        bytes.removeSubrange(start..<start + basePath.utf8.count)
        return (try? AbsoluteURL(bytes: bytes)) ?? url
    }
}

/// What comes of a stream through a daemon.
struct ProxyChecks {
    /// The URL that a player would be given.
    let entry: AbsoluteURL
    let client: StreamClient
    let direct: StreamChecks
    private(set) var findings: [Finding] = []

    init(entry: AbsoluteURL, _ client: StreamClient, direct: StreamChecks) {
        self.entry = entry
        self.client = client
        self.direct = direct
    }

    mutating func run() {
        let reading = StreamReading(entry, client)
        guard let answer = reading.answers[entry] else {
            let reason = reading.failures.first?.reason ?? "no answer"
            findings.append(
                .problem("through Sluice", "no answer: \(reason)", "look at the daemon's log"))
            return
        }
        guard answer.status == 200 else {
            // The daemon's own sentence says whose fault it is and what to do.
            let text = String(decoding: answer.body.prefix(1_000), as: UTF8.self)
            findings.append(
                .problem(
                    "through Sluice",
                    "answered \(answer.status): \(text.prefix { $0 != "\n" })",
                    "do what it says, or look at the daemon's log"))
            return
        }
        findings.append(OriginFindings.times(answer.phases, "through Sluice"))
        for (node, reason) in reading.failures.prefix(3)
        where !reading.outlines.isEmpty && !isGoneAtOrigin(reading.nodes, node) {
            findings.append(
                .problem(
                    "through Sluice", "\(node.url.redacted): \(reason)",
                    "look at the daemon's log, and send a report"))
        }
        tryAsPage()
        compare(reading)
    }

    private mutating func tryAsPage() {
        let check = "CORS through Sluice"
        let origin = ["Origin: \(StreamClient.page)"]
        guard let answer = try? client.ask(entry, more: origin, limit: 1_000) else { return }
        let allowed = answer.fields.first(.accessControlAllowOrigin)
        if answer.status == 200, allowed == "*" || allowed == StreamClient.page {
            return findings.append(.ok(check, "pages may read it"))
        }
        let text = String(decoding: answer.body.prefix { $0 != 0x0A }, as: UTF8.self)
        findings.append(
            .warning(
                check, "answered \(answer.status) to a page of another site: \(text)",
                "name the site of your player with --cors-origin if it is such a page"))
    }

    /// Whether the playlist at the same position failed directly too, which was reported already.
    private func isGoneAtOrigin(_ nodes: [InspectNode], _ node: InspectNode) -> Bool {
        guard let index = nodes.firstIndex(where: { $0.url == node.url }),
            let origin = direct.reading?.nodes, origin.indices.contains(index),
            case .failure = origin[index].result
        else { return false }
        return true
    }

    // MARK: One segment

    private mutating func compare(_ reading: StreamReading) {
        guard let sample = direct.sample else { return }
        let reference = sample.reference.flatMap { reading.sample($0.mediaSequence) }
        guard sample.reference == nil || reference != nil else {
            findings.append(
                .warning(
                    "same bytes", "the playlist advanced before the segment was requested",
                    "ask again"))
            return
        }
        let target = reference?.url ?? entry
        do throws(BlockingClient.Failure) {
            let first = try client.ask(
                target, range: reference?.range, limit: StreamChecks.mostCompared)
            guard [200, 206].contains(first.status) else {
                findings.append(
                    .problem(
                        "segment through Sluice", "answered \(first.status)",
                        "look at the daemon's log"))
                return
            }
            findings.append(OriginFindings.comparison(sample.bytes, first.body))
            let start = reference?.range?.lowerBound ?? 0
            let asked = start...(start + 99)
            let part = try client.ask(target, range: asked, limit: 64 << 10)
            findings.append(
                OriginFindings.range(
                    part.status, part.fields, count: part.body.count, asked: asked,
                    "ranges through Sluice"))
            let status = part.fields.combined(.cacheStatus) ?? "no Cache-Status"
            findings.append(
                status.contains("hit")
                    ? .ok("second request", "answered from the store")
                    : .warning(
                        "second request", "not from the store: \(status)",
                        "`sluice why` shows why it is not stored"))
        } catch {
            findings.append(
                .problem(
                    "segment through Sluice", error.reason, "look at the daemon's log"))
        }
    }
}
