// The end of a run as statements of a story (Tests/PlaybackStories), to be copied there.

/// What happened between players, the daemon and the CDN.
struct RunStep {
    enum Kind {
        case requested(target: String, fields: [(String, String)], method: String)
        case answered(target: String, status: Int, bytes: Int, isWhole: Bool)
        case originAnswered(path: String, range: String?, status: Int, bytes: Int)
        case originFault(String)
        case killed, powerCut, terminated, started
        case outage(begins: Bool)
    }

    let time: Int64
    let kind: Kind
}

/// Writes the last steps of a run as Swift statements.
struct StoryScript {
    private let steps: [RunStep]
    private let failure: Failure

    /// The most steps of a script; earlier ones are left out.
    static let most = 60

    init(_ steps: [RunStep], _ failure: Failure) {
        self.steps = steps
        self.failure = failure
    }

    /// - Parameters:
    ///   - seed: the seed of the run.
    ///   - settings: the daemon's settings.
    /// - Returns: the lines of a test.
    func lines(seed: UInt64, settings: [String: String]) -> [String] {
        let arguments = settings.sorted { $0.key < $1.key }
            .filter { !["port", "allow-private", "log-level"].contains($0.key) }
            .map { "\"--\($0.key)\", \"\($0.value)\"" }
        var lines = [
            "/// Seed \(seed) of the simulator, \(failure.oracle.rawValue): \(failure.text)",
            "@Test func `seed \(seed)`() throws {",
            "    let story = try Story([\(arguments.joined(separator: ", "))])",
        ]
        var (fault, former): (String?, Int64) = (nil, steps.first?.time ?? 0)
        for step in steps.suffix(Self.most) {
            if step.time - former >= World.second {
                lines.append("    // \(Self.seconds(step.time - former)) later")
            }
            former = step.time
            switch step.kind {
            case .originFault(let kind): fault = kind
            case .originAnswered(let path, let range, let status, let bytes):
                lines += Self.origin(path, range, status, bytes, fault)
                fault = nil
            default: lines.append("    " + Self.statement(step.kind))
            }
        }
        lines.append("    // \(Self.seconds(failure.time)): \(failure.text)")
        return lines + ["}"]
    }

    private static func seconds(_ time: Int64) -> String {
        let tenths = time / (World.second / 10)
        return "\(tenths / 10).\(tenths % 10) s"
    }

    private static func statement(_ kind: RunStep.Kind) -> String {
        switch kind {
        case .requested(let target, let fields, let method):
            var arguments = ["\"\(place(target))\""]
            let range = fields.first { $0.0 == "Range" }
            if let range { arguments.append("range: \"\(range.1)\"") }
            let others = fields.filter { $0.0 != "Range" }.map { "(\"\($0.0)\", \"\($0.1)\")" }
            if !others.isEmpty { arguments.append("headers: [\(others.joined(separator: ", "))]") }
            if method != "GET" { arguments.append("method: \"\(method)\"") }
            return "_ = try story.get(\(arguments.joined(separator: ", ")))"
        case .answered(let target, let status, let bytes, let isWhole):
            return
                "// \(place(target)) was answered: \(status), \(bytes) bytes\(isWhole ? "" : ", broken")"
        case .killed: return "story.stop(SIGKILL)"
        case .powerCut: return "story.stop(SIGKILL)  // the power was cut"
        case .terminated: return "story.stop()"
        case .started: return "try story.restart()"
        case .outage(let begins): return begins ? "story.cdn.stop()" : "try story.cdn.start()"
        case .originFault, .originAnswered: return ""
        }
    }

    /// The CDN's part: a behaviour where it failed, a comment where it did not.
    private static func origin(
        _ path: String, _ range: String?, _ status: Int, _ bytes: Int, _ fault: String?
    ) -> [String] {
        let said = "    // CDN: \(path) \(range ?? "") -> \(status), \(bytes) bytes"
        guard let fault else { return [said] }
        let behaviours = [
            "serverError": "status=\(status)", "busy": "status=\(status)",
            "notFound": "status=\(status)", "cut": "trunc=\(bytes / 2)",
            "reset": "reset=\(bytes / 2)", "stalled": "stall=\(bytes / 2)", "slow": "rate=20000",
            "lateHead": "fb=5000", "noHead": "reset=0", "wholeForRange": "norange=1",
            "noLength": "chunked=1", "noFraming": "eof=1",
        ]
        let bare = path.prefix { $0 != "?" }
        guard let behaviour = behaviours[fault] else { return [said + ", \(fault)"] }
        return [
            "    story.cdn.setBehaviour(\"\(behaviour)\", for: \"\(bare)\")  // \(fault)", said,
        ]
    }

    /// The path at the CDN that a target of the daemon leads to; the target itself if it leads to
    /// none.
    static func place(_ target: String) -> String {
        let base = SimulatedCDN.base
        if let found = target.firstRange(of: base) { return String(target[found.upperBound...]) }
        // /<role>/<handle>/<name>: the handle contains the URL, without its scheme; that of a live
        // segment stands in the query.
        let query = target.firstRange(of: "?u=").map { target[$0.upperBound...] }
        let text = query ?? target.split(separator: "/").dropFirst().first ?? ""
        let handle = Array(text.utf8)
        for start in 0..<min(handle.count, 24) {
            let text = decoded(handle[start...])
            guard let found = text.firstRange(of: "10.1.0.") else { continue }
            return String(text[found.upperBound...].drop { $0 != "/" })
        }
        return target
    }

    /// Decodes base64url (RFC 4648 section 5) up to the first other byte.
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var (result, buffer, bits): ([UInt8], UInt32, Int) = ([], 0, 0)
        for byte in bytes {
            guard let value = alphabet.firstIndex(of: byte) else { break }
            buffer = (buffer << 6 | UInt32(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
