/// A response before it is framed and sent.
struct Response {
    var status: Int
    var fields: [(name: String, value: String)] = []
    /// The source of the body; nil: no content.
    var content: Content?
    /// The part of `content` that is the body.
    var range = 0..<0
}

/// Determines the response to a request (conditions, ranges and redirects); does not send it.
///
/// Order of the preconditions as in RFC 9110, section 13.2.2.
struct Responder {
    let request: WireRequest
    let behaviour: Behaviour

    /// The response for `resource`, which is nil if the path has none.
    func respond(_ resource: Resource?) -> Response {
        if let refusal = refusal() { return refusal }
        guard request.method == "GET" || request.method == "HEAD" else {
            return text(405, [("Allow", "GET, HEAD")])
        }
        if let location = behaviour.location {
            return text(behaviour.status ?? 302, [("Location", location)])
        }
        if let status = behaviour.status, status >= 300 || status == 204 { return text(status) }
        guard var resource else { return text(404) }
        apply(to: &resource)
        var response = representation(resource)
        if let status = behaviour.status, response.status == 200 { response.status = status }
        return response
    }

    /// A short text response that states its status.
    func text(_ status: Int, _ fields: [(name: String, value: String)] = []) -> Response {
        guard status != 204 && status != 304 else {
            return Response(status: status, fields: fields + behaviour.extraFields)
        }
        let body = Array("\(status) \(Reason.of(status))\n".utf8)
        return Response(
            status: status,
            fields: [("Content-Type", "text/plain")] + fields + behaviour.extraFields,
            content: .memory(body), range: 0..<body.count)
    }

    private func refusal() -> Response? {
        if let token = behaviour.requiredToken, request.query["token"] != token { return text(403) }
        if let cookie = behaviour.requiredCookie {
            let sent = request.fields.filter { sameName($0.name, "Cookie") }.map(\.value)
            let pairs = sent.flatMap { $0.split(separator: ";").map(trimmed) }
            if !pairs.contains(cookie) { return text(403) }
        }
        if let field = behaviour.requiredField {
            let parts = field.split(separator: ":", maxSplits: 1).map(trimmed)
            guard parts.count == 2, request[parts[0]] == parts[1] else { return text(403) }
        }
        return nil
    }

    private func apply(to resource: inout Resource) {
        if let tag = behaviour.entityTag {
            let quoted = tag.hasPrefix("W/") ? "W/\"\(tag.dropFirst(2))\"" : "\"\(tag)\""
            resource.entityTag = tag.isEmpty ? "" : quoted
        }
        if let date = behaviour.lastModified { resource.lastModified = date }
        if let type = behaviour.contentType { resource.contentType = type }
        if let rotation = behaviour.rotation, resource.contentType == MediaType.of("a.m3u8") {
            let plain = ContentReader(resource.content).read(0..<resource.content.length)
            let text = rotation.text(
                String(decoding: plain, as: UTF8.self), turn: behaviour.turn)
            resource.content = .memory(Array(text.utf8))
            resource.entityTag = ""
            resource.lastModified = ""
        }
        let accepted = request["Accept-Encoding"]?.lowercased().contains("gzip") ?? false
        guard behaviour.gzip == .always || (behaviour.gzip == .ifAccepted && accepted) else {
            return
        }
        let plain = Array(ContentReader(resource.content).read(0..<resource.content.length))
        resource.content = .memory(StoredGzip.encode(plain))
        if resource.entityTag.hasSuffix("\"") { resource.entityTag.removeLast() }
        resource.entityTag += resource.entityTag.isEmpty ? "" : "-gzip\""
        resource.extraFields += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    }

    private func representation(_ resource: Resource) -> Response {
        var validators: [(name: String, value: String)] = []
        if !resource.entityTag.isEmpty { validators.append(("ETag", resource.entityTag)) }
        if !resource.lastModified.isEmpty {
            validators.append(("Last-Modified", resource.lastModified))
        }
        let length = resource.content.length
        let extra = resource.extraFields + behaviour.extraFields
        if isUnchanged(resource) { return Response(status: 304, fields: validators + extra) }
        var fields = validators
        if !resource.contentType.isEmpty { fields.append(("Content-Type", resource.contentType)) }
        fields += extra
        if !behaviour.ignoresRange {
            fields.append(("Accept-Ranges", "bytes"))
            if let wanted = request["Range"], request.method == "GET", rangeApplies(resource) {
                switch RangeRequest(wanted, length: length) {
                case .range(let range):
                    let total = behaviour.hidesTotal ? "*" : "\(length)"
                    let span = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
                    return Response(
                        status: 206, fields: fields + [("Content-Range", span)],
                        content: resource.content, range: range)
                case .unsatisfiable:
                    return text(416, [("Content-Range", "bytes */\(length)")])
                case .ignored: break
                }
            }
        }
        return Response(status: 200, fields: fields, content: resource.content, range: 0..<length)
    }

    private func isUnchanged(_ resource: Resource) -> Bool {
        if let condition = request["If-None-Match"] {
            let weak: (String) -> String = { $0.hasPrefix("W/") ? String($0.dropFirst(2)) : $0 }
            let tags = condition.split(separator: ",").map { weak(trimmed($0)) }
            return !resource.entityTag.isEmpty
                && (tags.contains("*") || tags.contains(weak(resource.entityTag)))
        }
        guard let condition = request["If-Modified-Since"].flatMap(DateText.parse),
            let modified = DateText.parse(resource.lastModified)
        else { return false }
        return modified <= condition
    }

    /// Whether If-Range allows a partial response: only an identical strong validator does (RFC
    /// 9110, section 13.1.5).
    private func rangeApplies(_ resource: Resource) -> Bool {
        guard let condition = request["If-Range"] else { return true }
        if condition.hasPrefix("\"") { return condition == resource.entityTag }
        return !condition.hasPrefix("W/") && condition == resource.lastModified
    }
}

/// A `Range` field applied to a representation (RFC 9110, section 14.1.2).
enum RangeRequest: Equatable {
    case range(Range<Int>)
    case unsatisfiable
    /// Malformed, in another unit, or several ranges: the field is ignored.
    case ignored

    init(_ text: String, length: Int) {
        self = .ignored
        guard text.lowercased().hasPrefix("bytes=") else { return }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return }
        let first = trimmed(parts[0])
        let last = trimmed(parts[1])
        let digits = (first + last).utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard digits, !(first + last).isEmpty else { return }
        if first.isEmpty {
            let count = min(Int(last) ?? Int.max, length)
            self = count == 0 ? .unsatisfiable : .range((length - count)..<length)
            return
        }
        let start = Int(first) ?? Int.max
        let end = last.isEmpty ? Int.max : Int(last) ?? Int.max
        guard start <= end else { return }
        self = start >= length ? .unsatisfiable : .range(start..<(min(end, length - 1) + 1))
    }
}

/// Reason phrases of the statuses the sample CDN sends.
enum Reason {
    static func of(_ status: Int) -> String { table[status] ?? "Status" }

    private static let table = [
        200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently",
        302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
        308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
        404: "Not Found", 405: "Method Not Allowed", 410: "Gone", 416: "Range Not Satisfiable",
        429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout",
    ]
}
