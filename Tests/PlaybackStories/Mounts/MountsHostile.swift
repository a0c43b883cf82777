// Messages that two parsers could read differently (RFC 9112 section 11), from files.
import FixtureCDN
import ScenarioSupport
import Testing

/// One line of `Fixtures/http/hostile-*.tsv`.
struct HostileCase: Sendable, CustomTestStringConvertible {
    let status: String
    let name: String
    let content: String
    let bytes: String
    var testDescription: String { name }

    static func read(_ file: String) -> [HostileCase] {
        let text = (try? Fixture.text("http/\(file)")) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let cells = line.split(separator: "\t", omittingEmptySubsequences: false)
                .map(String.init)
            precondition(cells.count == 4, "a line of \(file) has \(cells.count) cells: \(line)")
            return HostileCase(
                status: cells[0], name: cells[1], content: cells[2], bytes: cells[3])
        }
    }

    /// The bytes of a text with escapes.
    static func unescape(_ text: String, host: String = "") -> [UInt8] {
        var output: [UInt8] = []
        var rest = text[...]
        while let character = rest.popFirst() {
            switch character {
            case "{":
                let command = rest.prefix { $0 != "}" }
                rest = rest.dropFirst(command.count + 1)
                if command == "host" {
                    output += Array(host.utf8)
                } else {
                    let words = command.split(separator: " ", maxSplits: 2)
                    let piece = unescape(String(words[2]))
                    for _ in 0..<(Int(words[1]) ?? 0) { output += piece }
                }
            case "\\":
                switch rest.popFirst() {
                case "r": output.append(13)
                case "n": output.append(10)
                case "t": output.append(9)
                case "0": output.append(0)
                case "x":
                    output.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
                    rest = rest.dropFirst(2)
                case let other?: output += Array(String(other).utf8)
                case nil: break
                }
            default: output += Array(String(character).utf8)
            }
        }
        return output
    }
}

extension Stories {
    @Suite(.tags(.crowded)) struct MountsHostile {}
}

extension Stories.MountsHostile {
    @Test(.timeLimit(.minutes(5)))
    func `an ambiguous request is rejected, or parsed as the RFC says`() throws {
        let story = try MountedStory()
        let cases = HostileCase.read("hostile-requests.tsv")
        #expect(cases.count > 60)
        for line in cases {
            if line.content != "-" { story.origin.answer("/o/a", .respond(200)) }
            let before = story.origin.requests.count
            let stream = try story.player().sendRaw(
                HostileCase.unescape(line.bytes, host: story.host))
            let status = try stream.readHead().status
            #expect("\(status)" == line.status.prefix(3), "\(line.name)")
            _ = try stream.readRest()
            let came = story.origin.bodies.dropFirst(before)
            let wanted = line.content == "-" ? [] : [HostileCase.unescape(line.content)]
            #expect(Array(came) == wanted, "\(line.name)")
            let goesOn = line.status == "200" || line.status.hasSuffix("+")
            #expect(goesOn || stream.waitForClose(), "\(line.name)")
            stream.close()
        }
        #expect(story.origin.requests.allSatisfy { !$0.target.contains("evil") })
        story.origin.answer("/o/z", .respond(200))
        #expect(try story.ask("POST", "/z", body: [1]).status == 200)
    }

    @Test(arguments: HostileCase.read("hostile-responses.tsv"), ["GET", "POST"])
    func `an ambiguous response is rejected, or parsed as the RFC says`(
        _ line: HostileCase, _ method: String
    ) throws {
        let story = try MountedStory()
        let bytes = HostileCase.unescape(line.bytes)
        for _ in 0..<8 { story.origin.answer("/o/a", .send(bytes), .close) }
        let answer = try story.ask(method, "/a")
        #expect("\(answer.status)" == line.status.prefix(3))
        if answer.status == 200 { #expect(answer.complete != line.status.hasSuffix("!")) }
        if line.content != "-" { #expect(answer.text == line.content) }
        #expect(answer.fields.allSatisfy { !$0.value.contains("evil") })
        #expect(answer.head.all("Content-Length").count <= 1)
        story.origin.answer("/o/b", .respond(200, [], Array("next".utf8)))
        #expect(try story.ask(method, "/b").text == "next")
    }
}
