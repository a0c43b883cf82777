import Glibc
import Synchronization

/// A bucket of S3 in memory, whose faults are chosen and which checks every signature itself.
///
/// Every connection has a thread; all methods may be called from any thread and none blocks, except
/// `stop()`.
package final class BucketFixture: Sendable {
    private struct State {
        var fault: Fault?
        var objects: [String: [UInt8]] = [:]
        var uploads: [String: [Int: [UInt8]]] = [:]
        var nextUpload = 1
        var requests: [(method: String, target: String, fields: [(name: String, value: String)])] =
            []
        var unsigned = 0
        var pageSize = 1_000
        var hanging = 0
        var conditions = Conditions.kept
        /// The secret that counts; nil for the first one.
        var secret: String?
    }

    package let bucket = "films"
    package let keyID: String
    package let secret: String
    package let token: String?
    private let state = Mutex(State())
    private let listening = ListeningPort()

    /// A bucket that is not listening yet; the key has a colon in it, as Swift's have.
    package init(
        keyID: String = "test:tester", secret: String = "tier+secret/x", token: String? = nil
    ) {
        self.keyID = keyID
        self.secret = secret
        self.token = token
    }

    /// Starts to listen; after `stop()`, on the same port again.
    ///
    /// Throws `CDNError`.
    package func start() throws {
        try listening.start { descriptor, _ in self.serve(descriptor) }
    }

    /// Closes the listener and every connection; what is stored stays.
    package func stop() { listening.stop() }

    // MARK: What stories ask and set

    /// The value of `--shared-store`.
    package var location: String {
        "s3://\(bucket)/tier?endpoint=http://127.0.0.1:\(listening.port)&region=us-east-1"
    }

    /// The variables that hold the credentials.
    package var environment: [(name: String, value: String)] {
        [("AWS_ACCESS_KEY_ID", keyID), ("AWS_SECRET_ACCESS_KEY", secret)]
            + (token.map { [("AWS_SESSION_TOKEN", $0)] } ?? [])
    }

    package var fault: Fault? {
        get { state.withLock { $0.fault } }
        set { state.withLock { $0.fault = newValue } }
    }

    package var conditions: Conditions {
        get { state.withLock { $0.conditions } }
        set { state.withLock { $0.conditions = newValue } }
    }

    /// Names and bytes.
    package var objects: [String: [UInt8]] {
        get { state.withLock { $0.objects } }
        set { state.withLock { $0.objects = newValue } }
    }

    /// Writes an object, as another node would.
    package func put(_ bytes: [UInt8], as name: String) {
        state.withLock { $0.objects[name] = bytes }
    }

    /// The objects of the cache.
    package var cached: [String: [UInt8]] { objects.filter { $0.key.contains("/v1/o/") } }

    /// Method and target of each request so far.
    package var requests: [(method: String, target: String)] {
        state.withLock { $0.requests.map { ($0.method, $0.target) } }
    }

    /// The fields of all requests so far.
    package var fields: [(name: String, value: String)] {
        state.withLock { $0.requests.flatMap(\.fields) }
    }

    /// Requests whose signature did not fit; they were refused.
    package var wrongSignatures: Int { state.withLock { $0.unsigned } }
    /// Writes that wait for their end.
    package var hangingWrites: Int { state.withLock { $0.hanging } }
    /// Uploads in parts that are neither completed nor removed.
    package var openUploads: Int { state.withLock { $0.uploads.count } }

    /// Replaces the secret: requests that are signed with the former one are refused.
    package func setSecret(_ secret: String) { state.withLock { $0.secret = secret } }

    /// Lists have so many names a page; with 0 they have none and do not end.
    package func setPageSize(_ size: Int) { state.withLock { $0.pageSize = size } }

    // MARK: Connections

    private func serve(_ descriptor: Int32) {
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while let request = head(descriptor, &received, &buffer) {
            guard let body = body(of: request, descriptor, &received, &buffer) else { break }
            guard answer(request, body, descriptor) else { break }
        }
    }

    private func head(
        _ descriptor: Int32, _ received: inout [UInt8], _ buffer: inout [UInt8]
    ) -> WireRequest? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let found = received.firstRange(of: end) {
                let request = WireRequest(head: received[..<found.lowerBound])
                received.removeFirst(found.upperBound)
                return request
            }
            let count = Sockets.receive(descriptor, into: &buffer)
            guard count > 0, received.count < 1 << 20 else { return nil }
            received += buffer[..<count]
        }
    }

    private func body(
        of request: WireRequest, _ descriptor: Int32, _ received: inout [UInt8],
        _ buffer: inout [UInt8]
    ) -> [UInt8]? {
        guard let length = request.contentLength else { return nil }
        if request["Expect"] != nil, received.isEmpty {
            _ = Sockets.send(descriptor, Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)[...])
        }
        while received.count < length {
            if state.withLock({ $0.fault == .hangingWrites }), !received.isEmpty {
                state.withLock { $0.hanging += 1 }
                _ = Sockets.pause(descriptor, milliseconds: -1)
                state.withLock { $0.hanging -= 1 }
                return nil
            }
            let count = Sockets.receive(descriptor, into: &buffer)
            guard count > 0 else { return nil }
            received += buffer[..<count]
        }
        let body = Array(received[..<length])
        received.removeFirst(length)
        return body
    }

    // MARK: Answers

    private struct Answer {
        var status: Int
        var fields: [(String, String)] = []
        var body: [UInt8] = []
        var stated: Int?
        var sent: Int?
    }

    private func answer(_ request: WireRequest, _ body: [UInt8], _ descriptor: Int32) -> Bool {
        let fault = state.withLock { state in
            state.requests.append((request.method, request.target, request.fields))
            return state.fault
        }
        if let milliseconds = fault?.delay(of: request),
            !Sockets.pause(descriptor, milliseconds: milliseconds)
        {
            return false
        }
        var answer = decide(request, body, fault)
        if request.method == "HEAD" { (answer.stated, answer.body) = (answer.body.count, []) }
        let stated = answer.stated ?? answer.body.count
        var text = "HTTP/1.1 \(answer.status) Status\r\nContent-Length: \(stated)\r\n"
        for (name, value) in answer.fields { text += "\(name): \(value)\r\n" }
        let bytes = answer.sent.map { answer.body.prefix($0) } ?? answer.body[...]
        let whole = Array((text + "\r\n").utf8) + bytes
        if case .trickling(let count) = fault, whole.count > count {
            return trickle(whole, after: count, descriptor) && request.keepsAlive
        }
        let sent = Sockets.send(descriptor, whole[...])
        return sent == whole.count && (stated == bytes.count || request.method == "HEAD")
            && request.keepsAlive
    }

    private func trickle(_ bytes: [UInt8], after count: Int, _ descriptor: Int32) -> Bool {
        guard Sockets.send(descriptor, bytes[..<count]) == count else { return false }
        var rest = bytes[count...]
        while !rest.isEmpty {
            let piece = rest.prefix(400)
            guard Sockets.pause(descriptor, milliseconds: 100),
                Sockets.send(descriptor, piece) == piece.count
            else { return false }
            rest = rest.dropFirst(piece.count)
        }
        return true
    }

    private func error(_ status: Int, _ code: String) -> Answer {
        Answer(
            status: status, fields: [("Content-Type", "application/xml")],
            body: Array("<?xml version=\"1.0\"?><Error><Code>\(code)</Code></Error>".utf8))
    }

    private func decide(_ request: WireRequest, _ body: [UInt8], _ fault: Fault?) -> Answer {
        let secret = state.withLock { $0.secret } ?? secret
        guard SignatureFour(keyID: keyID, secret: secret, token: token).fits(request, body) else {
            state.withLock { $0.unsigned += 1 }
            return error(403, "SignatureDoesNotMatch")
        }
        if case .refusing(let status) = fault {
            return error(status, status == 403 ? "AccessDenied" : "SlowDown")
        }
        if case .refusingWrites(let status) = fault, request.method != "GET" {
            return error(status, "InternalError")
        }
        if case .refusingLongWrites(let length) = fault, body.count > length {
            return error(403, "AccessDenied")
        }
        if let status = fault?.refusal(ofRead: request) { return error(status, "Refused") }
        let start = "/\(bucket)"
        guard request.path.hasPrefix(start), fault != .lackingBucket else {
            return error(404, "NoSuchBucket")
        }
        let name = String(request.path.dropFirst(start.count + 1))
        if case .refusingLists(let status) = fault, name.isEmpty {
            return error(status, "Refused")
        }
        if name.isEmpty { return request.method == "GET" ? list(request) : error(405, "No") }
        switch request.method {
        case "GET", "HEAD": return read(name, request, fault)
        case "PUT": return write(name, request, body)
        case "POST": return upload(name, request, body)
        case "DELETE":
            state.withLock { state in
                if let number = request.query["uploadId"] {
                    state.uploads[number] = nil
                } else {
                    state.objects[name] = nil
                }
            }
            return Answer(status: 204)
        default: return error(405, "MethodNotAllowed")
        }
    }

    private func tag(of bytes: [UInt8]) -> String {
        "\"\(SHA256.hex(SHA256.digest(bytes)).prefix(32))\""
    }

    private func read(_ name: String, _ request: WireRequest, _ fault: Fault?) -> Answer {
        let objects = objects
        guard var bytes = objects[name] else { return error(404, "NoSuchKey") }
        let tag = tag(of: bytes)
        switch fault {
        case .corrupting: bytes[bytes.count - 1] ^= 1
        case .corruptingMiddle: bytes[bytes.count / 2] ^= 0x10
        case .swapping:
            let others = objects.filter { $0.key != name && $0.key.contains("/o/") }
            if let other = others.min(by: { $0.key < $1.key }) { bytes = other.value }
        default: break
        }
        var answer = Answer(status: 200, fields: [("ETag", tag)])
        answer.body = bytes
        if let range = request["Range"], fault != .ignoringRanges {
            let ends = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
            guard let first = Int(ends[0]), first < bytes.count else {
                return error(416, "InvalidRange")
            }
            let last = min(bytes.count - 1, Int(ends[1]) ?? bytes.count - 1)
            let shift = fault == .shiftingRanges && last + 1 < bytes.count ? 1 : 0
            answer.status = 206
            answer.fields.append(("Content-Range", "bytes \(first)-\(last)/\(bytes.count)"))
            answer.body = Array(bytes[(first + shift)...(last + shift)])
        }
        if case .truncating(let count) = fault { answer.sent = min(count, answer.body.count) }
        if case .shortLength(let count) = fault {
            answer.stated = max(0, answer.body.count - count)
            answer.sent = answer.stated
        }
        return answer
    }

    private func write(_ name: String, _ request: WireRequest, _ body: [UInt8]) -> Answer {
        if request["If-None-Match"] == "*" {
            let (conditions, isThere) = state.withLock { ($0.conditions, $0.objects[name] != nil) }
            if conditions == .refused { return error(501, "NotImplemented") }
            if conditions == .kept, isThere { return error(412, "PreconditionFailed") }
        }
        let isKept = state.withLock { state -> Bool in
            guard let number = request.query["uploadId"] else {
                state.objects[name] = body
                return true
            }
            guard let part = request.query["partNumber"].flatMap({ Int($0) }),
                state.uploads[number] != nil
            else { return false }
            state.uploads[number]?[part] = body
            return true
        }
        return isKept
            ? Answer(status: 200, fields: [("ETag", tag(of: body))]) : error(404, "NoSuchUpload")
    }

    private func upload(_ name: String, _ request: WireRequest, _ body: [UInt8]) -> Answer {
        if request.query["uploads"] != nil {
            let number = state.withLock { state in
                let number = "upload&\(state.nextUpload)"
                state.nextUpload += 1
                state.uploads[number] = [:]
                return number.replacing("&", with: "&amp;")
            }
            let text =
                "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                + "<UploadId>\(number)</UploadId></InitiateMultipartUploadResult>"
            return Answer(status: 200, body: Array(text.utf8))
        }
        guard let number = request.query["uploadId"],
            let parts = state.withLock({ $0.uploads.removeValue(forKey: number) })
        else { return error(404, "NoSuchUpload") }
        let named = String(decoding: body, as: UTF8.self)
        let fits = parts.allSatisfy { part, bytes in
            named.contains("<PartNumber>\(part)</PartNumber><ETag>\(tag(of: bytes))</ETag>")
        }
        guard fits, parts.keys.sorted() == Array(1...max(1, parts.count)) else {
            return error(400, "InvalidPart")
        }
        let whole = parts.sorted { $0.key < $1.key }.flatMap(\.value)
        state.withLock { $0.objects[name] = whole }
        return Answer(
            status: 200,
            body: Array(
                "<CompleteMultipartUploadResult><ETag>\(tag(of: whole))</ETag></CompleteMultipartUploadResult>"
                    .utf8))
    }

    private func list(_ request: WireRequest) -> Answer {
        let prefix = request.query["prefix"] ?? ""
        let after = request.query["continuation-token"] ?? request.query["start-after"] ?? ""
        let (objects, page) = state.withLock { ($0.objects, $0.pageSize) }
        let size = min(page, request.query["max-keys"].flatMap { Int($0) } ?? page)
        let names = objects.keys.filter { $0.hasPrefix(prefix) && $0 > after }.sorted()
        var text = "<?xml version=\"1.0\"?><ListBucketResult><Name>\(bucket)</Name>"
        for name in names.prefix(size) {
            let bytes = objects[name] ?? []
            text +=
                "<Contents><Key>\(name)</Key><Size>\(bytes.count)</Size>"
                + "<ETag>\(tag(of: bytes))</ETag></Contents>"
        }
        let isCut = names.count > size || size == 0
        text += "<IsTruncated>\(isCut)</IsTruncated>"
        if isCut {
            let next = size == 0 ? after + "x" : names[size - 1]
            text += "<NextContinuationToken>\(next)</NextContinuationToken>"
        }
        return Answer(status: 200, body: Array((text + "</ListBucketResult>").utf8))
    }
}
