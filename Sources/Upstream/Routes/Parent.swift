import HTTP
import Numbers
package import URISyntax

/// A cache between the daemon and origins, which requests are sent to first (RFC 9110 section 3.7).
///
/// A class, since each request holds one or none: a copy is one reference.
package final class Parent: Sendable, CustomStringConvertible {
    /// A piece of the URL that a parent is asked with.
    private enum Piece: Equatable, Sendable {
        case text([UInt8])
        case url, scheme, host, path
    }

    /// The first path segment of the form that another sluice is asked in; no letter of a role.
    package static let letter = UInt8(ascii: "o")

    /// Where it listens.
    package let origin: Origin
    /// Any URL there that holds nothing of an origin, for the question whether it answers.
    package let root: AbsoluteURL
    /// Whether it is another sluice, which says in `Cache-Status` whose fault an error is.
    package let isSluice: Bool
    /// Whether it may see headers and cookies of sessions.
    package let isTrusted: Bool
    /// The value of `Proxy-Authorization`; nil for none.
    let credentials: String?
    private let start: [UInt8]
    private let pieces: [Piece]
    /// For people: says that there are credentials, and not which.
    package let description: String

    /// Reads `http[s]://[USER:PASSWORD@]HOST[:PORT][/PATH]`, another sluice, or the same followed
    /// by a template with `{url}`, or with `{host}` and `{path}` and perhaps `{scheme}`.
    package init(_ text: String, isTrusted: Bool) throws(RouteFault) {
        let mark = text.firstIndex(of: "{") ?? text.endIndex
        guard let base = try? AbsoluteURL(String(text[..<mark])) else {
            throw RouteFault(
                "it is written http://HOST:PORT for another sluice, or http://HOST:PORT/{scheme}/{host}{path}"
            )
        }
        let bare = base.withoutUserinfo
        guard let root = try? AbsoluteURL("\(base.origin)/") else {
            throw RouteFault("it has no host")
        }
        origin = base.origin
        self.root = root
        self.isTrusted = isTrusted
        credentials = base.userinfo.map {
            let pair = PercentCoding.decode(Array($0.utf8)[...])
            return "Basic " + Base64.encode(pair.contains(0x3A) ? pair : [0x3A] + pair)
        }
        isSluice = mark == text.endIndex
        if isSluice {
            guard bare.query == nil else { throw RouteFault("another sluice has no query") }
            var bytes = bare.bytes
            if bytes.last == 0x2F { bytes.removeLast() }
            start = bytes + [0x2F, Self.letter, 0x2F]
            pieces = []
        } else {
            start = bare.bytes
            pieces = try Self.pieces(text[mark...])
        }
        let rest = isSluice ? "" : String(text[mark...])
        description = bare.text + rest + (credentials == nil ? "" : " (with credentials)")
    }

    private static func pieces(_ template: Substring) throws(RouteFault) -> [Piece] {
        var pieces: [Piece] = []
        var rest = template
        while let mark = rest.first {
            guard mark == "{" else {
                let text = rest.prefix { $0 != "{" }
                pieces.append(.text(Array(text.utf8)))
                rest = rest[text.endIndex...]
                continue
            }
            guard let end = rest.firstIndex(of: "}") else { throw RouteFault("a { lacks its }") }
            switch rest[rest.index(after: rest.startIndex)..<end] {
            case "url": pieces.append(.url)
            case "scheme": pieces.append(.scheme)
            case "host": pieces.append(.host)
            case "path": pieces.append(.path)
            default:
                throw RouteFault("a template has {url}, {scheme}, {host} and {path}, nothing else")
            }
            rest = rest[rest.index(after: end)...]
        }
        guard pieces.contains(.url) || (pieces.contains(.host) && pieces.contains(.path)) else {
            throw RouteFault("a template needs {url}, or {host} and {path}")
        }
        return pieces
    }

    /// The URL that the parent is asked with for an origin's.
    ///
    /// - Parameters:
    ///   - url: the origin's.
    ///   - role: the letter of what it is to the player, which another sluice gives it a lane by.
    /// - Returns: nil where the parts make no URL.
    package func url(for url: AbsoluteURL, role: UInt8) -> AbsoluteURL? {
        let url = url.withoutUserinfo
        let pathStart = url.pathRange.lowerBound
        var bytes = start
        if isSluice { bytes += [role, 0x2F] + url.bytes }
        for piece in pieces {
            switch piece {
            case .text(let text): bytes += text
            case .url: bytes += url.bytes
            case .scheme: bytes += Array(url.scheme.name.utf8)
            case .host: bytes += url.bytes[(url.scheme.name.utf8.count + 3)..<pathStart]
            case .path:
                let path = url.bytes[pathStart...]
                if path.first != 0x2F { bytes.append(0x2F) }
                bytes += path
            }
        }
        return try? AbsoluteURL(bytes: bytes)
    }
}

/// The parents that misses go to.
package struct Parents: Sendable {
    package let all: [Parent]

    package init(_ all: [Parent] = []) { self.all = all }

    package var isEmpty: Bool { all.isEmpty }

    /// The parents in the order in which they are asked for a key.
    ///
    /// Each object has a parent of its own, and where that fails a second one of its own
    /// (rendezvous hashing): the loss of one moves nothing that the others hold.
    package func order(for key: String) -> [Parent] {
        guard all.count > 1 else { return all }
        return all.map { (weight: stableHash("\($0.root.text) \(key)"), parent: $0) }
            .sorted { $0.weight > $1.weight }.map(\.parent)
    }
}

/// The way of one transfer through a parent.
package struct ParentWay: Sendable {
    package let parent: Parent
    /// The letter of the resource's role.
    package let role: UInt8

    package init(_ parent: Parent, role: UInt8) {
        self.parent = parent
        self.role = role
    }
}
