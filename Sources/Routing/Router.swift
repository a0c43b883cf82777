// Parses the request target as one of the daemon's URL forms.
import HLS
package import HTTP
package import URISyntax

/// Routes request targets.
///
/// Pure; one instance serves all loops.
package struct Router: Sendable {
    private let mounts: MountTable
    /// What a proxy in front removes from the path of requests; "" or "/x".
    let basePath: String
    /// True if a URL in `/proxy?url=` that is not percent-encoded keeps its arguments `token`:
    /// origins have such ones too, and the caller removes the access token.
    package var keepsTokens = false

    /// Longer mount paths win over shorter ones.
    package init(mounts: [Mount], basePath: String = "") {
        self.mounts = MountTable(mounts)
        self.basePath = basePath
    }

    /// True if a path can be a mount without hiding one of the daemon's own forms.
    package static func mayMount(_ path: String) -> Bool {
        guard path != "/" else { return true }
        let first = path.dropFirst().prefix { $0 != "/" }
        if ["proxy", "api", "console", "metrics", "http:", "https:"].contains(String(first)) {
            return false
        }
        if EntryArguments.name(at: first) != nil { return false }
        return first.utf8.count != 1
    }

    /// Returns the mount that covers an origin's URL; the one with the longest origin.
    package func mount(standingFor url: AbsoluteURL) -> Mount? {
        mounts.all.filter { url.bytes.starts(with: $0.origin.bytes) }
            .max { $0.origin.bytes.count < $1.origin.bytes.count }
    }

    /// True for the path of a mount without the slash at its end.
    package func isMountWithoutSlash(_ path: String) -> Bool {
        path.utf8.last != 0x2F && mounts.hasMount(at: path + "/")
    }

    /// Returns the mounts of an origin.
    package func mounts(of origin: Origin) -> [Mount] {
        mounts.all.filter { $0.origin.origin == origin }
    }

    /// Returns the route of a request target.
    package func route(_ head: RequestHead) -> Route {
        // The most common forms first.
        if let link = Self.link(in: head.target) { return link }
        if let url = Self.rawURL(in: head.target) { return Self.entry(bytes: url) }
        if let asked = Self.childRequest(in: head.target) { return asked }
        if let link = Self.sealedLink(in: head.target) { return link }
        let path = head.path
        // Every form may come in absolute-form (RFC 9112 section 3.2.2).
        if path.utf8.first == 0x2F, head.target.utf8.first != 0x2F {
            let target = head.query.map { "\(path)?\($0)" } ?? path
            return route(RequestHead(method: head.method, target: target))
        }
        if path == "/proxy" || path == "/proxy/" { return queryEntry(head.query ?? "") }
        if EntryArguments.name(at: path.dropFirst()) != nil { return entry(inPath: head.target) }
        if path.hasPrefix("/api/") || path == "/metrics" || path == "/console"
            || path.utf8.starts(with: "/console/".utf8)
        {
            return .own(path: path)
        }
        if let mount = mounts.mount(for: path) { return mounted(mount, path, head.query) }
        return .own(path: path)
    }

    /// Returns the route of `/s/<handle>/<name>`; nil for every other form.
    private static func link(in target: String) -> Route? {
        let bytes = target.utf8.span
        guard bytes.count >= 3, bytes[0] == 0x2F, bytes[2] == 0x2F,
            let role = ResourceRole(letter: bytes[1])
        else { return nil }
        let nameEnd = endOfPath(bytes, from: 3)
        let end = slash(in: bytes, 3..<nameEnd)
        guard end > 3 else { return .refused(.notFound, "the URL lacks its handle") }
        let items = query(of: target, from: nameEnd).map { QueryItem.items(of: String($0)) } ?? []
        return .rewritten(
            RewrittenLink(
                role: role, handle: part(of: target, 3..<end),
                fileName: part(of: target, min(end + 1, nameEnd)..<nameEnd),
                origin: items.first { $0.rawName == LivePlace.argument }?.rawValue?[...],
                directives: items.isEmpty ? [] : items.filter { $0.rawName.hasPrefix("_HLS_") },
                pathway: role == .playlist && !items.isEmpty ? PathwayMove(items) : nil,
                cookies: items.first { $0.rawName == RewrittenLink.cookieArgument }?.rawValue?[...])
        )
    }

    /// The letter that stands before a sealed session; no letter of a role.
    package static let sealLetter = UInt8(ascii: "c")

    /// Returns the route of `/c/<sealed session>/s/<handle>/<name>`; nil for every other form.
    private static func sealedLink(in target: String) -> Route? {
        let bytes = target.utf8.span
        guard bytes.count > 3, bytes[0] == 0x2F, bytes[1] == sealLetter, bytes[2] == 0x2F else {
            return nil
        }
        let end = slash(in: bytes, 3..<endOfPath(bytes, from: 3))
        guard case .rewritten(var link)? = link(in: String(part(of: target, end..<bytes.count)))
        else {
            return .refused(
                .notFound, "behind /c/ and a sealed session stands a link: /c/<session>/s/...")
        }
        link.sealed = part(of: target, 3..<end)
        return .rewritten(link)
    }

    /// Returns the index of the `?` or `#` behind the path of a target, or the end of the target.
    private static func endOfPath(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var end = start
        while end < bytes.count, bytes[end] != 0x3F, bytes[end] != 0x23 { end += 1 }
        return end
    }

    /// Returns the index of the first slash in a range, or the end of the range.
    private static func slash(in bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != 0x2F { end += 1 }
        return end
    }

    /// Returns the text between `?` and `#` in a target whose path ends at `mark`.
    private static func query(of target: String, from mark: Int) -> Substring? {
        let bytes = target.utf8.span
        guard mark < bytes.count, bytes[mark] == 0x3F else { return nil }
        var end = mark + 1
        while end < bytes.count, bytes[end] != 0x23 { end += 1 }
        return part(of: target, (mark + 1)..<end)
    }

    private static func part(of text: String, _ range: Range<Int>) -> Substring {
        let start = text.utf8.index(text.utf8.startIndex, offsetBy: range.lowerBound)
        return Substring(text.utf8[start..<text.utf8.index(start, offsetBy: range.count)])
    }

    /// The letter that stands before what a cache asks of us as its parent; no letter of a role.
    package static let parentLetter = UInt8(ascii: "o")

    /// The route of `/o/<role>/https://host/path?query`, whose answer is the origin's, byte for byte.
    private static func childRequest(in target: String) -> Route? {
        let bytes = target.utf8.span
        guard bytes.count > 5, bytes[0] == 0x2F, bytes[1] == parentLetter, bytes[2] == 0x2F,
            bytes[4] == 0x2F, let role = ResourceRole(letter: bytes[3])
        else { return nil }
        guard let url = rawURL(in: String(target.utf8.dropFirst(4)) ?? "") else {
            return .refused(
                .badRequest, "behind /o/ and a role stands the URL: /o/s/https://host/...")
        }
        do throws(URIError) {
            return .forChild(role, try AbsoluteURL(given: url))
        } catch {
            return .refused(.badRequest, "the URL that is asked for is not usable: \(error)")
        }
    }

    private func mounted(_ mount: Mount, _ path: String, _ query: String?) -> Route {
        let rest = path.dropFirst(mount.path.count)
        // A path that climbs out of the mount would reach resources that are not mounted.
        if Self.climbs(String(rest)) {
            return .refused(.badRequest, "the path climbs out of the mount \(mount.path)")
        }
        do throws(URIError) {
            let tail = query.map { "\(rest)?\($0)" } ?? String(rest)
            return .mount(mount, Telemetry.stripped(try mount.url(for: tail[...])))
        } catch {
            return .refused(.badRequest, error.description)
        }
    }

    /// True if a path contains a segment `..` in any interpretation.
    ///
    /// Origins differ in what they decode, and how often, in whether `\` separates segments, and in
    /// whether parameters after `;` belong to a segment (in RFC 3986 section 3.3 they do).
    package static func climbs(_ path: String) -> Bool {
        var path = path
        for _ in 0..<4 {
            let segments = path.utf8.split(omittingEmptySubsequences: false) {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\")
            }
            let up = Array("..".utf8)
            if segments.contains(where: { $0.prefix { $0 != UInt8(ascii: ";") }.elementsEqual(up) })
            {
                return true
            }
            let decoded = PercentCoding.decode(path[...])
            guard decoded != path else { return false }
            path = decoded
        }
        // Encoding a path so often is never well-meant.
        return true
    }

    // MARK: Entries

    /// Returns the URL after the slash of `/https://host/path?query`, with the scheme in any case; nil
    /// if there is none.
    ///
    /// A collapsed double slash (`/https:/host`) is restored: proxies and shells collapse it.
    private static func rawURL(in target: String) -> [UInt8]? {
        let bytes = target.utf8.span
        guard begins(bytes, with: slashHTTP, at: 0) else { return nil }
        var end = slashHTTP.count
        if end < bytes.count, ASCII.lowercased(bytes[end]) == 0x73 { end += 1 }
        if begins(bytes, with: encodedSlashes, at: end) {
            return Array(PercentCoding.decode(target.dropFirst()).utf8)
        }
        guard begins(bytes, with: colonSlash, at: end) else { return nil }
        let slash = end + colonSlash.count - 1
        // The second slash, or the first one again if they were collapsed.
        let rest = slash + 1 < bytes.count && bytes[slash + 1] == 0x2F ? slash + 1 : slash
        var url: [UInt8] = []
        url.append(addingCapacity: bytes.count) { url in
            for index in 1...slash { url.append(bytes[index]) }
            for index in rest..<bytes.count { url.append(bytes[index]) }
        }
        return url
    }

    private static let slashHTTP = Array("/http".utf8)
    private static let colonSlash = Array(":/".utf8)
    private static let encodedSlashes = Array("%3a%2f%2f".utf8)

    /// True if bytes at an offset equal the wanted ones, ignoring case.
    private static func begins(_ bytes: Span<UInt8>, with wanted: [UInt8], at start: Int) -> Bool {
        guard start + wanted.count <= bytes.count else { return false }
        let wanted = wanted.span
        for index in wanted.indices
        where ASCII.lowercased(bytes[start + index]) != wanted[index] { return false }
        return true
    }

    /// Routes `/dvr=2h/height=720/https://host/path?query`: the arguments precede the URL, since
    /// everything after them belongs to the origin.
    private func entry(inPath target: String) -> Route {
        var arguments = EntryArguments()
        var rest = target[...]
        while let name = EntryArguments.name(at: rest.dropFirst()) {
            // Behind the slash and the equals sign.
            let value = rest.dropFirst(name.utf8.count + 2).prefix { $0 != "/" }
            if let fault = arguments.take(value, for: name) { return .refused(.badRequest, fault) }
            rest = rest[value.endIndex...]
        }
        guard let url = Self.rawURL(in: String(rest)) else {
            return .refused(
                .badRequest,
                "behind dvr=, height= and bandwidth= stands the URL: /dvr=2h/https://host/...")
        }
        return Self.entry(bytes: url, arguments)
    }

    private func queryEntry(_ query: String) -> Route {
        var url: String?
        var headers: [Entry.Header] = []
        var token: String?
        var arguments = EntryArguments()
        for item in EntryQuery.items(of: query, keepsTokens: keepsTokens) {
            let name = item.name()
            if name == "url", url == nil {
                url = item.rawValue.map(EntryQuery.url(in:))
            } else if name == "token" {
                token = item.value()
            } else if EntryArguments.isName(name) {
                if let fault = arguments.take(item.value(), for: name) {
                    return .refused(.badRequest, fault)
                }
            } else if name.hasPrefix("h_") {
                let header = Entry.Header(name: String(name.dropFirst(2)), value: item.value())
                if let fault = header.fault {
                    return .refused(.badRequest, "h_\(header.name.prefix(40)) \(fault)")
                }
                headers.append(header)
            }
        }
        guard let url, !url.isEmpty else {
            return .refused(
                .badRequest, "the argument url is missing: /proxy?url=<percent-encoded URL>")
        }
        return Self.entry(bytes: Array(url.utf8), headers: headers, token: token, arguments)
    }

    private static func entry(
        bytes: [UInt8], headers: [Entry.Header] = [], token: String? = nil,
        _ arguments: EntryArguments = EntryArguments()
    ) -> Route {
        var (bytes, headers) = (bytes, headers)
        if let split = PlayerHeaders.split(bytes) {
            if let fault = PlayerHeaders.fault(of: split.headers) {
                return .refused(.badRequest, fault)
            }
            bytes = split.url
            headers += split.headers
        }
        do throws(URIError) {
            let url = Telemetry.stripped(try AbsoluteURL(given: bytes))
            return .entry(
                Entry(
                    url: url, headers: headers, token: token, window: arguments.window,
                    limit: arguments.limit))
        } catch {
            return .refused(.badRequest, "the URL to play is not usable: \(error.description)")
        }
    }
}
