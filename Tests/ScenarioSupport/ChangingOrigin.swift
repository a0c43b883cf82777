// An origin with its own HTTP code whose resources change and whose responses vary in everything
// that HTTP leaves open: a cache must send bytes of one version that this origin had.
import FixtureCDN
import Glibc
import Synchronization

/// How one resource is served, whatever its version.
package struct OriginTraits: Sendable, Equatable {
    package enum Validator: String, Sendable, CaseIterable {
        case strong, weak, date, both, none
    }

    package enum Framing: String, Sendable, CaseIterable {
        case length, chunked, close
    }

    package var validator = Validator.strong
    package var framing = Framing.length
    package var takesRanges = true
    /// The body is labelled as coded with gzip; for a cache it is bytes like any others.
    package var isEncoded = false
    package var cacheControl: String?
    package var lengths: [Int] = [100_000]
    /// Bytes per second; nil for as fast as possible.
    package var pace: Int?
    /// Milliseconds before the head of an answer.
    package var delay = 0

    package init() {}
}

/// A faulty response of an origin.
package enum OriginFault: Sendable, Equatable {
    /// This many body bytes, then the end of the connection.
    case cut(Int)
    /// This many body bytes, then a TCP reset.
    case reset(Int)
    /// A status without content of the resource.
    case status(Int)
    /// A 206 for a range that begins this many bytes after the requested one.
    case shifted(Int)
    /// A 206 without Content-Range.
    case unlabelled
    /// The whole body, and then a pause of this many milliseconds, or until the client has closed.
    case lingering(Int)
    /// A 206 for this many first bytes, whatever was requested.
    case unaskedPart(Int)
}

package final class ChangingOrigin: Sendable {
    private struct Subject {
        var traits: OriginTraits
        var version = 0
        var changesNext = false
        var faults: [OriginFault] = []
        var requests = 0
    }

    private struct State {
        var subjects: [Subject] = []
        var bodies: [String: [UInt8]] = [:]
        var log: [String] = []
    }

    private let seed: UInt64
    private let state = Mutex(State())
    private let listener: WireListener

    /// Listens on a free port of 127.0.0.1; `seed` decides the contents.
    package init(seed: UInt64, _ traits: [OriginTraits]) throws {
        self.seed = seed
        listener = try WireListener()
        state.withLock { $0.subjects = traits.map { Subject(traits: $0) } }
        try listener.start { self.serve($0) }
    }

    package var baseURL: String { "http://127.0.0.1:\(listener.port)" }

    package func path(_ subject: Int) -> String { "/o/subject\(subject).ts" }

    /// Requests for a subject so far.
    package func requests(_ subject: Int) -> Int {
        state.withLock { $0.subjects[subject].requests }
    }

    package func version(_ subject: Int) -> Int { state.withLock { $0.subjects[subject].version } }

    /// Changes the content.
    package func change(_ subject: Int) { state.withLock { $0.subjects[subject].version += 1 } }

    /// Changes the content for all requests after the next one.
    package func changeAfterNextAnswer(_ subject: Int) {
        state.withLock { $0.subjects[subject].changesNext = true }
    }

    /// Sets the faults of the next answers.
    package func fail(_ subject: Int, _ faults: [OriginFault]) {
        state.withLock { $0.subjects[subject].faults += faults }
    }

    /// Removes the remaining faults.
    package func heal(_ subject: Int) { state.withLock { $0.subjects[subject].faults = [] } }

    /// Takes the lines about requests and responses since the last call.
    package func takeLog() -> [String] {
        state.withLock { state in
            defer { state.log = [] }
            return state.log
        }
    }

    /// The bytes of a version.
    package func body(_ subject: Int, _ version: Int) -> [UInt8] {
        let name = "\(seed)-\(subject)-\(version)"
        return state.withLock { state in
            if let known = state.bodies[name] { return known }
            let lengths = state.subjects[subject].traits.lengths
            let made = FixtureCDN.syntheticBytes(name, 0..<lengths[version % lengths.count])
            state.bodies[name] = made
            return made
        }
    }

    /// The validators of a version: entity tag and date, if it has them.
    package func validators(_ subject: Int, _ version: Int) -> (tag: String?, date: String?) {
        let kind = state.withLock { $0.subjects[subject].traits.validator }
        let tag = "\"s\(subject)-v\(version)\""
        let date = DateLine.text(1_700_000_000 + 86_400 * version)
        return switch kind {
        case .strong: (tag, nil)
        case .weak: ("W/" + tag, nil)
        case .date: (nil, date)
        case .both: (tag, date)
        case .none: (nil, nil)
        }
    }

    package func stop() { listener.stop() }

    // MARK: Connections

    private func serve(_ descriptor: Int32) -> WireListener.Closing {
        let socket = WireSocket(
            descriptor: descriptor, name: "origin", transcript: nil, limit: .seconds(40))
        while (try? answerOne(socket)) == true {}
        return { socket.close() }
    }

    /// Answers one request; false where the connection has ended.
    private func answerOne(_ socket: WireSocket) throws -> Bool {
        guard let request = try socket.readHead() else { return false }
        let name = request.path.split(separator: "/").last ?? ""
        guard let subject = Int(name.filter(\.isNumber)),
            subject < state.withLock({ $0.subjects.count })
        else {
            try socket.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".utf8)
            return true
        }
        let (traits, version, fault) = state.withLock { state in
            state.subjects[subject].requests += 1
            let faults = state.subjects[subject].faults
            let fault = request.method == "GET" ? faults.first : nil
            if fault != nil { state.subjects[subject].faults.removeFirst() }
            let now = state.subjects[subject]
            if now.changesNext {
                state.subjects[subject].changesNext = false
                state.subjects[subject].version += 1
            }
            return (now.traits, now.version, fault)
        }
        let answer = OriginAnswer(
            request, traits, fault, body: body(subject, version),
            validators: validators(subject, version))
        if traits.delay > 0 { usleep(UInt32(traits.delay) * 1000) }
        let asked = request["Range"].map { " \($0)" } ?? ""
        let condition = request["If-Range"].map { " if-range \($0)" } ?? ""
        let line = "subject\(subject) v\(version): \(request.method)\(asked)\(condition)"
        let told = answer.fields.first { $0.name == "Content-Range" }.map { " \($0.value)" } ?? ""
        state.withLock {
            $0.log.append("\(line) -> \(answer.status)\(told)" + (fault.map { " \($0)" } ?? ""))
        }
        return try answer.send(on: socket)
    }
}

/// The origin's response to one request, by RFC 9110 unless it has a fault.
private struct OriginAnswer {
    var status = 200
    var fields: [WireHead.Field] = []
    private var range = 0..<0
    private let body: [UInt8]
    private let traits: OriginTraits
    private let fault: OriginFault?
    private let isHead: Bool
    private let keepsAlive: Bool

    init(
        _ request: WireHead, _ traits: OriginTraits, _ fault: OriginFault?, body: [UInt8],
        validators: (tag: String?, date: String?)
    ) {
        self.body = body
        self.traits = traits
        self.fault = fault
        isHead = request.method == "HEAD"
        keepsAlive = request.keepsAlive
        range = 0..<body.count
        fields.append(("Date", DateLine.text(Int(time(nil)))))
        if case .status(let refused)? = fault {
            status = refused
            range = 0..<0
            return
        }
        if let control = traits.cacheControl { fields.append(("Cache-Control", control)) }
        if let tag = validators.tag { fields.append(("ETag", tag)) }
        if let date = validators.date { fields.append(("Last-Modified", date)) }
        if Self.isUnchanged(request, validators) {
            status = 304
            range = 0..<0
            return
        }
        fields.append(("Content-Type", "video/mp2t"))
        if traits.isEncoded { fields.append(("Content-Encoding", "gzip")) }
        if traits.takesRanges { fields.append(("Accept-Ranges", "bytes")) }
        choosePart(request, validators)
    }

    private mutating func choosePart(
        _ request: WireHead, _ validators: (tag: String?, date: String?)
    ) {
        if case .unaskedPart(let count)? = fault, body.count > 1 {
            return sendPart(0..<min(max(1, count), body.count), isLabelled: true)
        }
        guard traits.takesRanges, !isHead, let asked = request["Range"],
            Self.mayApply(request["If-Range"], validators)
        else { return }
        switch WireRange.parse(asked, length: body.count) {
        case .ignored: break
        case .unsatisfiable:
            status = 416
            fields.append(("Content-Range", "bytes */\(body.count)"))
            range = 0..<0
        case .part(let part):
            if case .shifted(let by)? = fault, part.lowerBound + by < part.upperBound {
                return sendPart(part.lowerBound + by..<part.upperBound, isLabelled: true)
            }
            sendPart(part, isLabelled: fault != .unlabelled)
        }
    }

    private mutating func sendPart(_ part: Range<Int>, isLabelled: Bool) {
        status = 206
        range = part
        guard isLabelled else { return }
        fields.append(
            ("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(body.count)"))
    }

    private static func isUnchanged(
        _ request: WireHead, _ validators: (tag: String?, date: String?)
    ) -> Bool {
        if let condition = request["If-None-Match"] {
            guard let tag = validators.tag else { return false }
            let weak = { (tag: Substring) in tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
            return condition.split(separator: ",").contains {
                weak($0.drop { $0 == " " }) == weak(tag[...])
            }
        }
        return request["If-Modified-Since"].map { $0 == validators.date } ?? false
    }

    private static func mayApply(
        _ condition: String?, _ validators: (tag: String?, date: String?)
    ) -> Bool {
        guard let condition else { return true }
        return !condition.hasPrefix("W/")
            && (condition == validators.tag || condition == validators.date)
    }

    /// Sends it; false where the connection ends with it.
    func send(on socket: WireSocket) throws -> Bool {
        var fields = fields
        let hasContent = status != 304
        let framing = hasContent && status / 100 == 2 ? traits.framing : .length
        switch framing {
        case .length: if hasContent { fields.append(("Content-Length", "\(range.count)")) }
        case .chunked: if !isHead { fields.append(("Transfer-Encoding", "chunked")) }
        case .close: fields.append(("Connection", "close"))
        }
        try socket.send(encodeHead("HTTP/1.1 \(status) Answer", fields))
        if !isHead {
            var part = range
            switch fault {
            case .cut(let count)?, .reset(let count)?:
                part = range.lowerBound..<min(range.upperBound, range.lowerBound + count)
            default: break
            }
            try sendBody(part, on: socket, isChunked: framing == .chunked)
            switch fault {
            case .reset?:
                socket.willReset()
                return false
            case .cut?: return false
            case .lingering(let milliseconds)?: socket.waitForPeer(Int32(milliseconds))
            default: break
            }
            if framing == .chunked { try socket.send("0\r\n\r\n".utf8) }
        }
        return framing != .close && keepsAlive
    }

    private func sendBody(_ part: Range<Int>, on socket: WireSocket, isChunked: Bool) throws {
        var sent = part.lowerBound
        let step = traits.pace.map { max(1_000, $0 / 40) } ?? 64 << 10
        while sent < part.upperBound {
            let end = min(part.upperBound, sent + step)
            if isChunked { try socket.send("\(String(end - sent, radix: 16))\r\n".utf8) }
            try socket.send(body[sent..<end])
            if isChunked { try socket.send("\r\n".utf8) }
            sent = end
            if traits.pace != nil { usleep(25_000) }
        }
    }
}

/// A `Range` field of one range (RFC 9110, section 14.1.2).
package enum WireRange: Equatable {
    case part(Range<Int>)
    case unsatisfiable
    case ignored

    package static func parse(_ text: String, length: Int) -> Self {
        guard text.hasPrefix("bytes="), !text.contains(",") else { return .ignored }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return .ignored }
        if parts[0].isEmpty {
            guard let count = Int(parts[1]) else { return .ignored }
            return count == 0 || length == 0
                ? .unsatisfiable : .part(max(0, length - count)..<length)
        }
        guard let first = Int(parts[0]) else { return .ignored }
        let last = Int(parts[1]) ?? Int.max - 1
        guard first <= last else { return .ignored }
        return first >= length ? .unsatisfiable : .part(first..<min(last + 1, length))
    }
}

/// Dates of HTTP.
package enum DateLine {
    package static func text(_ seconds: Int) -> String {
        var at = time_t(seconds)
        var parts = tm()
        gmtime_r(&at, &parts)
        var buffer = [CChar](repeating: 0, count: 40)
        strftime(&buffer, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(
            decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
