// The origin behind one program, and what was seen of a plan in front of the program and behind it.
import Glibc
import ScenarioSupport
import Synchronization

@testable import Bench

/// One request that reached the origin, and its answer.
struct PeerExchange: Sendable {
    let request: WireHead
    /// The number of the answer; it is in its field `Serial`.
    let serial: Int
    /// 0 for a connection that was closed.
    let status: Int
    let fields: [WireHead.Field]
    let version: Int
    /// The content of the version for the request's variant, whatever was sent of it.
    let content: String
    /// When it was answered, in seconds since 1970.
    let time: Double

    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Whether it asked if something is unchanged.
    var isConditional: Bool {
        request["If-None-Match"] != nil || request["If-Modified-Since"] != nil
    }
}

/// What one request of a client came to.
struct PeerObservation: Sendable, CustomStringConvertible {
    let step: Int
    let ask: PeerAsk
    let answer: PlayerResponse
    /// What reached the origin from the time of the request on, until the next one.
    var exchanges: [PeerExchange] = []
    /// When the answer had come, in seconds since 1970.
    let time: Double

    var description: String {
        var lines = ["    \(step): \(answer.head.startLine), \(answer.body.count) bytes"]
        lines[0] += answer.broken.map { ", \($0)" } ?? ""
        lines += answer.fields.map { "        \($0.name): \($0.value)" }
        for exchange in exchanges {
            lines.append("      origin: \(exchange.request.startLine)")
            lines += exchange.request.fields.map { "          \($0.name): \($0.value)" }
            lines.append("        \(exchange.status)")
            lines += exchange.fields.map { "          \($0.name): \($0.value)" }
        }
        return lines.joined(separator: "\n")
    }

    var serial: Int? { answer["Serial"].flatMap { Int($0) } }
}

/// The resources of an origin, one for each plan.
final class PeerSubjects: Sendable {
    private struct Subject {
        var resource: PeerResource
        var version = 0
        var failure: Int?
        var exchanges: [PeerExchange] = []
    }

    private struct State {
        var subjects: [String: Subject] = [:]
        var serial = 0
    }

    private let state = Mutex(State())

    func add(_ path: String, _ resource: PeerResource) {
        state.withLock { $0.subjects[path] = Subject(resource: resource) }
    }

    /// Applies a step that is no request.
    func apply(_ step: PeerStep, to path: String) {
        state.withLock { state in
            switch step {
            case .ask: break
            case .change: state.subjects[path]?.version += 1
            case .fail(let status): state.subjects[path]?.failure = status
            case .heal: state.subjects[path]?.failure = nil
            case .control(let control, let age):
                state.subjects[path]?.resource.control = control
                state.subjects[path]?.resource.age = age
            }
        }
    }

    /// Takes what has reached the origin since the last time.
    func takeExchanges(of path: String) -> [PeerExchange] {
        state.withLock { state in
            defer { state.subjects[path]?.exchanges = [] }
            return state.subjects[path]?.exchanges ?? []
        }
    }

    func answer(_ request: WireHead) -> AnsweringOrigin.Answer {
        state.withLock { state in
            guard var subject = state.subjects[request.path] else {
                return .response(200, [("Cache-Control", "no-store")], Array("ready".utf8))
            }
            state.serial += 1
            let answer = PeerAnswer(
                request, subject.resource, version: subject.version, serial: state.serial,
                failure: subject.failure)
            // A change by a client takes effect unless it fails.
            if !["GET", "HEAD", "OPTIONS"].contains(request.method), answer.status / 100 == 2 {
                subject.version += 1
            }
            subject.exchanges.append(
                PeerExchange(
                    request: request, serial: state.serial, status: answer.status,
                    fields: answer.fields, version: answer.version, content: answer.content,
                    time: PeerWorld.now()))
            state.subjects[request.path] = subject
            guard answer.status > 0 else { return .nothing }
            return .response(answer.status, answer.fields, Array(answer.body.utf8))
        }
    }
}

/// What an origin answers, by RFC 9110.
struct PeerAnswer {
    let version: Int
    private(set) var status: Int
    private(set) var fields: [WireHead.Field] = []
    private(set) var body = ""
    let content: String

    init(
        _ request: WireHead, _ resource: PeerResource, version: Int, serial: Int, failure: Int?
    ) {
        self.version = version
        status = resource.status
        content = failure == nil ? Self.content(request, resource, version) : ""
        let now = Int(PeerWorld.now())
        fields = [("Date", DateLine.text(now)), ("Serial", "\(serial)")]
        if let failure {
            status = failure
            body = "the origin fails"
            return
        }
        guard request.method == "GET" || request.method == "HEAD" else {
            status = 200
            body = "\(request.method) done"
            return
        }
        if let control = resource.control { fields.append(("Cache-Control", control)) }
        if let age = resource.age { fields.append(("Age", "\(age)")) }
        if let expires = resource.expires {
            fields.append(("Expires", DateLine.text(now + expires)))
        }
        let tag = Self.tag(resource, version, content)
        let date = resource.modified.map { Self.date(resource, version, $0) }
        if let tag { fields.append(("ETag", tag)) }
        if let date { fields.append(("Last-Modified", date)) }
        if let vary = resource.vary { fields.append(("Vary", vary)) }
        if resource.takesConditions, status == 200,
            PeerCondition.isUnchanged(request, tag: tag, date: date)
        {
            status = 304
            return
        }
        fields += [("Content-Type", "text/plain"), ("X-Version", "\(version)")]
        if content.hasPrefix("coded") { fields.append(("Content-Encoding", "br")) }
        if resource.setsCookie { fields.append(("Set-Cookie", "s=\(serial)")) }
        if status / 100 == 3 { fields.append(("Location", "/elsewhere")) }
        body = content
        guard resource.takesRanges, status == 200, request.method == "GET",
            let asked = request["Range"],
            PeerCondition.mayApply(request["If-Range"], tag: tag, date: date)
        else { return }
        switch WireRange.parse(asked, length: content.utf8.count) {
        case .ignored: break
        case .unsatisfiable:
            status = 416
            fields.append(("Content-Range", "bytes */\(content.utf8.count)"))
            body = ""
        case .part(let part):
            status = 206
            body = PeerCondition.part(of: content, part)
            let last = part.upperBound - 1
            fields.append(
                ("Content-Range", "bytes \(part.lowerBound)-\(last)/\(content.utf8.count)"))
        }
    }

    private static func content(
        _ request: WireHead, _ resource: PeerResource, _ version: Int
    ) -> String {
        guard let vary = resource.vary else { return "version \(version) of the content." }
        if resource.isCoded {
            let isTaken = request["Accept-Encoding"]?.contains("br") == true
            return "\(isTaken ? "coded" : "plain") version \(version) of it."
        }
        let kind = vary.split(separator: ",").map { name in
            request[String(name.drop { $0 == " " })] ?? "-"
        }
        return "version \(version) for \(kind.joined(separator: "/"))."
    }

    private static func tag(
        _ resource: PeerResource, _ version: Int, _ content: String
    ) -> String? {
        // Variants are told apart by their tags.
        let variant = content.utf8.reduce(0) { ($0 * 31 + Int($1)) % 99_991 }
        return switch resource.tag {
        case .strong: "\"v\(version)-\(resource.vary == nil ? 0 : variant)\""
        case .weak: "W/\"v\(version)-\(resource.vary == nil ? 0 : variant)\""
        case .none: nil
        }
    }

    /// The date of a version; the days of the versions of all plans are the same in one run.
    private static func date(_ resource: PeerResource, _ version: Int, _ age: Int) -> String {
        DateLine.text(PeerWorld.begin - age + 60 * version)
    }

    /// The value that `@tag1` or `@date1` in a client's request stands for.
    static func validator(_ word: String, _ resource: PeerResource) -> String? {
        guard let version = word.last.flatMap({ Int(String($0)) }) else { return nil }
        if word.hasPrefix("@tag") { return tag(resource, version, "") ?? "\"other\"" }
        if word.hasPrefix("@date") { return date(resource, version, resource.modified ?? 864_000) }
        return nil
    }
}

/// Conditions and ranges (RFC 9110 sections 13 and 14), apart from the daemon's own code.
enum PeerCondition {
    static func isUnchanged(_ request: WireHead, tag: String?, date: String?) -> Bool {
        isUnchanged(
            none: request["If-None-Match"], since: request["If-Modified-Since"], tag: tag,
            date: date)
    }

    static func isUnchanged(none: String?, since: String?, tag: String?, date: String?) -> Bool {
        if let none {
            if none == "*" { return true }
            guard let tag else { return false }
            let opaque = { (tag: Substring) in tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
            return none.split(separator: ",").contains {
                opaque($0.drop { $0 == " " }) == opaque(tag[...])
            }
        }
        guard let since = since.flatMap(seconds), let date = date.flatMap(seconds) else {
            return false
        }
        return date <= since
    }

    static func mayApply(_ condition: String?, tag: String?, date: String?) -> Bool {
        guard let condition else { return true }
        return !condition.hasPrefix("W/") && (condition == tag || condition == date)
    }

    static func part(of content: String, _ part: Range<Int>) -> String {
        String(decoding: Array(content.utf8)[part], as: UTF8.self)
    }

    /// Seconds since 1970 of a date of HTTP.
    static func seconds(_ text: String) -> Int? {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        // `Sun, 06 Nov 1994 08:49:37 GMT`
        let words = text.split(whereSeparator: { $0 == " " || $0 == ":" })
        guard words.count == 8, let day = Int32(words[1]),
            let month = months.firstIndex(of: String(words[2])), let year = Int32(words[3]),
            let hour = Int32(words[4]), let minute = Int32(words[5]), let second = Int32(words[6])
        else { return nil }
        var parts = tm()
        (parts.tm_mday, parts.tm_mon, parts.tm_year) = (day, Int32(month), year - 1900)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
        return timegm(&parts)
    }
}

/// One program with an origin of its own, or that origin alone.
final class PeerWorld: Sendable {
    let name: String
    /// How long an answer may take.
    private let limit: Duration
    private let subjects: PeerSubjects
    private let origin: AnsweringOrigin
    private let baseURL: String
    private let stop: @Sendable () -> Void

    /// The name of an origin without a program before it.
    static let direct = "direct"

    /// When this process began to compare, in seconds since 1970.
    static let begin = Int(now())

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// `start` starts a program for an origin and returns its URL and what ends it.
    init(
        _ name: String, within limit: Duration = .seconds(30),
        _ start: (AnsweringOrigin) throws -> (url: String, stop: @Sendable () -> Void)
    ) throws {
        self.name = name
        self.limit = limit
        let subjects = PeerSubjects()
        self.subjects = subjects
        let origin = try AnsweringOrigin { head, _ in subjects.answer(head) }
        self.origin = origin
        do {
            (baseURL, stop) = try start(origin)
        } catch {
            origin.stop()
            throw error
        }
    }

    deinit {
        stop()
        origin.stop()
    }

    /// Plays a plan; what its requests came to.
    func play(_ plan: PeerPlan, at path: String) throws -> [PeerObservation] {
        subjects.add(path, plan.resource)
        let player = ScriptedPlayer(baseURL, deadline: limit)
        var seen: [PeerObservation] = []
        for (number, step) in plan.steps.enumerated() {
            guard case .ask(let ask) = step else {
                subjects.apply(step, to: path)
                continue
            }
            let fields = ask.fields.map { field in
                (field.name, PeerAnswer.validator(field.value, plan.resource) ?? field.value)
            }
            let hasBody = !["GET", "HEAD", "OPTIONS", "DELETE"].contains(ask.method)
            let answer: PlayerResponse
            do {
                answer = try player.get(
                    path, headers: fields, method: ask.method, body: hasBody ? [0x61] : nil)
            } catch {
                // Only an origin that hangs up may give no answer at all.
                guard name == Self.direct else { throw error }
                continue
            }
            seen.append(
                PeerObservation(
                    step: number, ask: PeerAsk(method: ask.method, fields: fields),
                    answer: answer, exchanges: subjects.takeExchanges(of: path),
                    time: Self.now()))
        }
        return seen
    }
}
