import FixtureCDN
import ScenarioSupport
import Testing

/// Our own conformance cases in `Fixtures/http/conformance`, which cover what the public suite of
/// HTTP caches does not.
extension Stories {
    @Suite(.tags(.crowded)) struct ConformanceTests {}
}

/// One case of a file.
struct ConformanceCase: CustomTestStringConvertible, Sendable {
    let name: String
    let lines: [[String]]

    var testDescription: String { name }

    /// Every case of a file.
    static func all(_ file: String) -> [ConformanceCase] {
        guard let text = try? Fixture.text("http/conformance/\(file).txt") else { return [] }
        var cases: [ConformanceCase] = []
        var name: String?
        var lines: [[String]] = []
        func close() {
            if let name { cases.append(ConformanceCase(name: name, lines: lines)) }
            lines = []
        }
        for line in text.split(separator: "\n") {
            if line.hasPrefix("= ") {
                close()
                name = String(line.dropFirst(2))
            } else {
                lines.append(split(line))
            }
        }
        close()
        return cases
    }

    /// The parts of a line.
    private static func split(_ line: Substring) -> [String] {
        var parts: [String] = []
        var rest = line
        while let bar = rest.firstRange(of: " | ") {
            parts.append(String(rest[..<bar.lowerBound]))
            rest = rest[bar.upperBound...]
        }
        return parts + [String(rest)]
    }
}

extension Stories.ConformanceTests {
    @Test(arguments: ConformanceCase.all("ranges"))
    func `ranges and parts`(_ played: ConformanceCase) throws { try play(played) }

    @Test(arguments: ConformanceCase.all("conditions"))
    func `conditions and validators`(_ played: ConformanceCase) throws { try play(played) }

    @Test(arguments: ConformanceCase.all("stale"))
    func `stale responses and directives`(_ played: ConformanceCase) throws { try play(played) }

    @Test(arguments: ConformanceCase.all("vary"))
    func `variants and invalidation`(_ played: ConformanceCase) throws { try play(played) }

    @Test(arguments: ConformanceCase.all("broken"))
    func `origins that break`(_ played: ConformanceCase) throws { try play(played) }

    private func play(_ played: ConformanceCase) throws {
        let stage = try ConformanceStage()
        defer { stage.stop() }
        for line in played.lines { try stage.play(line) }
    }
}

/// A scripted origin and a daemon with a mount on it, and the outcome of a case.
final class ConformanceStage {
    private let origin: ScriptedOrigin
    private let folder: TemporaryFolder
    private var daemon: DaemonProcess
    private var last: PlayerResponse?
    /// Responses that are not made of fields and a body: one connection each.
    private static let path = "/x/it"

    init() throws {
        origin = try ScriptedOrigin()
        folder = try TemporaryFolder()
        daemon = try Self.start(folder, origin)
    }

    private static func start(_ folder: TemporaryFolder, _ origin: ScriptedOrigin) throws
        -> DaemonProcess
    {
        try Story.serve(folder.file("cache"), ["--mount", "/at/=\(origin.url("/x/"))"])
    }

    func stop() {
        daemon.kill(9)
        _ = try? daemon.waitForExit()
        origin.stop()
    }

    func play(_ parts: [String]) throws {
        let words = parts[0].split(separator: " ").map(String.init)
        switch words[0] {
        case "origin": queue(words[1], Array(parts.dropFirst()))
        case "client": try ask(words[1], Array(parts.dropFirst()))
        case "answer": check(Int(words[1]) ?? 0, Array(parts.dropFirst()))
        case "asked": checkOrigin(Int(words[1]) ?? 0, Array(parts.dropFirst()))
        case "restart":
            daemon.kill(15)
            _ = try daemon.waitForExit(within: .seconds(20))
            daemon = try Self.start(folder, origin)
        default: throw ScenarioFailure("no such line: \(parts[0])")
        }
    }

    // MARK: Lines

    private static func fields(_ parts: [String]) -> [WireHead.Field] {
        parts.compactMap { part in
            guard let colon = part.firstRange(of: ": ") else { return nil }
            let name = part[..<colon.lowerBound]
            guard !name.contains(" ") else { return nil }
            return (String(name), String(part[colon.upperBound...]))
        }
    }

    private static func value(_ word: String, in parts: [String]) -> String? {
        parts.first { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
    }

    private func queue(_ what: String, _ parts: [String]) {
        let body = Array((Self.value("body", in: parts) ?? "").utf8)
        guard let status = Int(what) else {
            // Twice, because libcurl repeats the request once if a kept connection fails.
            origin.answer(Self.path, .close)
            return
        }
        let respond = ScriptedOrigin.Step.respond(status, Self.fields(parts), body)
        if let count = Self.value("cut", in: parts).flatMap({ Int($0) }) {
            origin.answer(Self.path, .cut(afterBytes: count), respond)
        } else {
            origin.answer(Self.path, respond)
        }
    }

    private func ask(_ method: String, _ parts: [String]) throws {
        let body = Self.value("body", in: parts).map { Array($0.utf8) }
        last = try ScriptedPlayer(daemon.baseURL).get(
            "/at/it", headers: Self.fields(parts), method: method, body: body)
    }

    private func check(_ status: Int, _ parts: [String]) {
        guard let last else {
            Issue.record("nothing was asked")
            return
        }
        #expect(last.status == status, "\(last.head)\(last.text)")
        for field in Self.fields(parts) { check(field, in: last.head) }
        #expect(last.complete != parts.contains("broken"), "\(last.broken ?? "whole")")
        if let body = Self.value("body", in: parts) { #expect(last.text == body) }
        for part in parts where part.hasPrefix("has ") {
            #expect(last.text.contains(String(part.dropFirst(4))), "\(last.text)")
        }
    }

    private func check(_ field: WireHead.Field, in head: WireHead) {
        let found = head[field.name]
        switch field.value {
        case "-": #expect(found == nil, "\(field.name) in \(head)")
        case let wanted where wanted.hasSuffix("*"):
            #expect(found?.hasPrefix(String(wanted.dropLast())) == true, "\(field.name) in \(head)")
        default: #expect(found == field.value, "\(field.name) in \(head)")
        }
    }

    private func checkOrigin(_ count: Int, _ parts: [String]) {
        // Requests behind a response may take a moment.
        _ = eventually { origin.requests.count >= count }
        #expect(origin.requests.count == count, "\(origin.requests)")
        guard let request = origin.requests.last else { return }
        for field in Self.fields(parts) { check(field, in: request) }
    }
}
