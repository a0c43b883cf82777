// Tries an origin's stream direct, for `sluice doctor`.
import CommandSupport
import Diagnosis
import HLS
import HTTP
import Numbers
import Posix
import URISyntax

/// Requests of one stream, within a budget; blocks.
struct StreamClient {
    /// The page that requests pretend to come from, so that answers tell of CORS.
    static let page = "https://player.example"

    let budget: TransferBudget
    /// Request header lines.
    let lines: [String]
    /// Whether requests say that they come from the page.
    let comesFromPage: Bool
    /// The way to origins; nil for the direct one.
    var way: BlockingClient.Way?
    /// What stands in front of the daemon that is asked; nil for an origin.
    var front: FrontProxy?

    private var fields: [String] { lines + (comesFromPage ? ["Origin: \(Self.page)"] : []) }

    struct Answered {
        let status: Int
        let fields: Fields
        let body: [UInt8]
        let phases: RequestPhases
    }

    /// - Parameters:
    ///   - url: what to ask for.
    ///   - range: the first and the last byte; nil for the whole.
    ///   - more: further header lines.
    ///   - limit: the most bytes of the body; what follows is left out.
    /// - Returns: the answer after redirects, whatever its status.
    /// - Throws: where none came, or the budget is spent.
    func ask(
        _ url: AbsoluteURL, range: ClosedRange<Int64>? = nil, more: [String] = [], limit: Int
    ) throws(BlockingClient.Failure) -> Answered {
        guard let left = budget.next(now: .now()) else {
            throw BlockingClient.Failure(kind: .other, reason: "the limit of requests is reached")
        }
        let target = front?.target(of: url) ?? url
        var request = BlockingClient.Request("GET", target.requestForm)
        request.fields = fields + more
        request.range = range
        request.keepsFields = true
        request.followsRedirects = true
        request.way = way
        request.authority = front?.authority
        request.userAgent = "sluice/\(sluiceVersion)"
        request.milliseconds = left.milliseconds
        request.credentials = url.userinfo.map { PercentCoding.decode($0) }
        var bytes: [UInt8] = []
        let most = min(limit, left.bytes)
        defer { budget.spend(bytes.count) }
        do throws(BlockingClient.Failure) {
            let answer = try BlockingClient().perform(request) { piece in
                bytes.append(contentsOf: piece.prefix(most - bytes.count))
                return bytes.count < most
            }
            return Answered(answer, bytes)
        } catch {
            guard error.kind == .stopped, let answer = error.answer else { throw error }
            return Answered(answer, bytes)
        }
    }

    /// What reads playlists with these headers.
    func loader(
        _ observe: @escaping (AbsoluteURL, BlockingClient.Answer, [UInt8]) -> Void
    ) -> InspectLoader {
        InspectLoader(fields: fields, way: way, front: front, budget: budget, observe: observe)
    }
}

extension StreamClient.Answered {
    init(_ answer: BlockingClient.Answer, _ body: [UInt8]) {
        status = answer.status
        var fields = Fields()
        for (name, value) in answer.fields { fields.append(name, value) }
        self.fields = fields
        self.body = body
        phases = RequestPhases(
            name: answer.phases.name, connect: answer.phases.connect,
            secure: answer.phases.secure, firstByte: answer.phases.firstByte)
    }
}

/// The playlists of a stream with the answers that they came in.
struct StreamReading {
    let root: InspectNode
    let answers: [AbsoluteURL: StreamClient.Answered]

    /// The most playlists that are read.
    private static let mostPlaylists = 12

    init(_ url: AbsoluteURL, _ client: StreamClient) {
        var answers: [AbsoluteURL: StreamClient.Answered] = [:]
        let loader = client.loader { answers[$0] = StreamClient.Answered($1, $2) }
        var tree = InspectTree(loader: loader, limit: Self.mostPlaylists)
        root = tree.read(url)
        self.answers = answers
    }

    var nodes: [InspectNode] { [root] + root.children }

    var outlines: [(node: InspectNode, outline: PlaylistOutline)] {
        nodes.compactMap { node in (try? node.result.get()).map { (node, $0) } }
    }

    /// The playlists that could not be read, with the reason.
    var failures: [(node: InspectNode, reason: String)] {
        nodes.compactMap { node in
            guard case .failure(let failure) = node.result else { return nil }
            return (node, failure.text)
        }
    }

    /// A segment to look at closer: of a live playlist one that stays for a while.
    func sample(_ sequence: Int? = nil) -> ResourceReference? {
        guard let outline = outlines.first(where: { !$0.outline.segments.isEmpty })?.outline else {
            return nil
        }
        let segments = outline.segments.filter { !$0.isGap }
        if let sequence { return segments.first { $0.mediaSequence == sequence } }
        return outline.summary.isLive ? segments.suffix(3).first : segments.first
    }
}

/// What an origin's own answers say.
struct StreamChecks {
    let url: AbsoluteURL
    let client: StreamClient
    private(set) var findings: [Finding] = []
    /// The stream direct; nil where its origin did not answer.
    private(set) var reading: StreamReading?
    /// What is compared: a URL, its range, its sequence number in the playlist, and the origin's bytes.
    private(set) var sample: (reference: ResourceReference?, bytes: [UInt8])?

    /// The most bytes of a segment that are compared.
    static let mostCompared = 16 << 20

    /// The settings of the way to the origin; empty for the direct one.
    private let route: String

    init(_ url: AbsoluteURL, _ client: StreamClient, route: String) {
        self.url = url
        self.client = client
        self.route = route
    }

    mutating func run() {
        if !route.isEmpty { findings.append(.ok("way to the origin", route)) }
        let reading = StreamReading(url, client)
        guard let answer = reading.answers[url] else {
            let reason = reading.failures.first?.reason ?? "no answer"
            findings.append(
                .problem(
                    "origin", "\(url.redacted) does not answer: \(reason)",
                    "look at the URL and at the line; --origin-proxy, --doh-url and --resolve set other ways"
                ))
            return
        }
        findings.append(OriginFindings.times(answer.phases, "origin"))
        if let date = answer.fields.first(.date) {
            let given = answer.fields.first(.age)
            let age = given.flatMap { ExternalNumber.integer($0, in: 0...Int64(1) << 31) } ?? 0
            let now = WallTime.now().seconds
            findings += [MachineFindings.clock(now, date: date, age: age)].compactMap { $0 }
        }
        guard answer.status == 200 else {
            findings.append(OriginFindings.refusal(answer.status, "origin"))
            return
        }
        self.reading = reading
        if case .success = reading.root.result {
            judge(reading, answer)
        } else if answer.body.starts(with: Array("#EXTM3U".utf8))
            || url.lastPathSegment.hasSuffix(".m3u8")
        {
            let reason = reading.failures.first?.reason ?? ""
            findings.append(
                .problem("playlist", "it cannot be read: \(reason)", "have its maker mend it"))
            return
        } else {
            findings.append(.ok("playlist", "it is not a playlist; tested as a file"))
        }
        lookAtSegment()
    }

    // MARK: Playlists

    private mutating func judge(_ reading: StreamReading, _ answer: StreamClient.Answered) {
        let outlines = reading.outlines
        let kind = outlines.first?.outline.summary.kind.rawValue ?? ""
        let live = outlines.contains { $0.outline.summary.isLive } ? "live" : "VOD"
        findings.append(.ok("playlists", "\(outlines.count) read: \(kind), \(live)"))
        for (node, reason) in reading.failures.prefix(5) {
            findings.append(
                .problem(
                    "playlists", "\(node.url.redacted): \(reason)",
                    "players that choose it stop; have it removed from the playlist above"))
        }
        let features = outlines.flatMap(\.outline.features)
        let tags = Set(features).sorted().joined(separator: ", ")
        findings.append(.ok("playlist tags", tags.isEmpty ? "plain segments only" : tags))
        let broken = outlines.flatMap { pair in
            pair.outline.violations.filter { $0.level == .must }.map { (pair.node, $0) }
        }
        if let (node, first) = broken.first {
            findings.append(
                .warning(
                    "playlist rules",
                    "\(broken.count) requirements (MUST) violated, first in \(node.url.redacted): \(first)",
                    "see all with `sluice inspect`; strict players may refuse it"))
        } else {
            findings.append(.ok("playlist rules", "no requirement (MUST) is violated"))
        }
        findings.append(OriginFindings.playlistType(answer.fields))
        findings.append(OriginFindings.crossOrigin(answer.fields, page: StreamClient.page))
        var seen: Set<String> = []
        for (node, outline) in outlines {
            guard let body = reading.answers[node.url]?.body else { continue }
            for finding in PlayerFindings.of(body, outline, at: node.url)
            where seen.insert(finding.text).inserted { findings.append(finding) }
        }
        if seen.isEmpty { findings.append(.ok("players", "nothing that breaks players")) }
    }

    // MARK: One segment

    private mutating func lookAtSegment() {
        let reference = reading?.sample()
        if reading?.outlines.isEmpty == false, reference == nil {
            findings.append(.warning("segment", "none is listed", "look with `sluice inspect`"))
            return
        }
        let target = reference?.url ?? url
        let start = Int64(reference?.byteRange?.offset ?? 0)
        let asked = start...(start + 99)
        do throws(BlockingClient.Failure) {
            let part = try client.ask(target, range: asked, limit: 64 << 10)
            guard [200, 206, 416].contains(part.status) else {
                findings.append(OriginFindings.refusal(part.status, "segment"))
                return
            }
            findings.append(
                OriginFindings.range(
                    part.status, part.fields, count: part.body.count, asked: asked, "ranges"))
            findings.append(OriginFindings.segmentType(part.fields))
            findings.append(OriginFindings.validators(part.fields))
            findings.append(OriginFindings.caching(part.fields))
            if part.status == 206 {
                let other = try client.ask(
                    target, range: asked, more: ["If-Range: \"sluice-doctor\""], limit: 1_024)
                findings.append(OriginFindings.conditionalRange(other.status))
            }
            let whole = try client.ask(target, range: reference?.range, limit: Self.mostCompared)
            guard [200, 206].contains(whole.status) else {
                findings.append(OriginFindings.refusal(whole.status, "segment"))
                return
            }
            sample = (reference, whole.body)
        } catch {
            findings.append(
                .problem(
                    "segment", "\(target.redacted): \(error.reason)",
                    "the origin is at fault, or too slow for this line"))
        }
    }
}

extension ResourceReference {
    /// The first and the last byte that it is made of; nil for all.
    var range: ClosedRange<Int64>? {
        byteRange.map { Int64($0.offset)...Int64(max($0.offset, $0.end - 1)) }
    }
}
