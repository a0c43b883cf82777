// The console's files: the responses at `/`, `/console` and below `/console/`.
import ConsoleAssets
package import HTTP
package import HTTPServer
import Model
import Synchronization

/// Responds to requests for the files.
///
/// No file contains any of the daemon's data, so that none requires an access token: the page asks
/// for it.
package final class ConsoleFiles: Sendable {
    /// One file as it is sent.
    private struct File: Sendable {
        let type: String
        let bytes: [UInt8]
        let tag: String
        var compressed: [UInt8]?
    }

    /// The path of the files, and of the console if a mount occupies `/`.
    package static let folder = "/console/"
    /// The same path without its slash, as people type it.
    private static let typedFolder = "/console"
    /// The content security policy: the page runs only the daemon's files and sends requests only
    /// to the daemon.
    package static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
        "img-src 'self' data: blob:", "media-src 'self' blob:", "worker-src 'self' blob:",
        "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'",
    ].joined(separator: "; ")

    private let files = Mutex<[String: File]>([:])
    private let player: ConsolePlayer
    private let compress: @Sendable ([UInt8]) -> [UInt8]?

    /// - Parameters:
    ///   - player: the file of hls.js.
    ///   - compress: compresses with gzip; nil if that fails.
    package init(player: ConsolePlayer, compress: @escaping @Sendable ([UInt8]) -> [UInt8]?) {
        self.player = player
        self.compress = compress
    }

    /// True if a request is for a file of the console: `/` only if it accepts HTML, as browsers do
    /// but curl and players do not.
    package static func answers(_ path: String, _ request: RequestHead) -> Bool {
        path == "/" ? acceptsPages(request) : contains(path)
    }

    /// True for the paths of the console's files besides `/`, whether or not there is such a file.
    package static func contains(_ path: String) -> Bool {
        path.hasPrefix(folder) || path == typedFolder
    }

    private static func acceptsPages(_ request: RequestHead) -> Bool {
        request.fields.listMembers(.accept).contains { member in
            let parts = member.split(separator: ";").map { $0.filter { $0 != " " } }
            guard parts.first?.lowercased() == "text/html" else { return false }
            return !parts.dropFirst().contains {
                ["q=0", "q=0.0", "q=0.00", "q=0.000"].contains($0)
            }
        }
    }

    /// Returns the response to a request for which `answers` is true; nil if there is no such file.
    package func answer(_ path: String, _ request: RequestHead) -> (ResponseHead, ResponseBody)? {
        if path == Self.typedFolder { return Self.redirect(request) }
        let name = Self.name(of: path)
        if name == ConsolePlayer.name {
            return player.answer(request, Self.fields("text/javascript"))
        }
        guard let file = file(name, atRoot: path == "/") else { return nil }
        var fields = Self.fields(file.type)
        fields.append(.vary, path == "/" ? "Accept, Accept-Encoding" : "Accept-Encoding")
        let isCompressed = ContentCoding.acceptsGzip(request.fields) && file.compressed != nil
        let tag = isCompressed ? "\"\(file.tag)-gzip\"" : "\"\(file.tag)\""
        fields.append(.etag, tag)
        if Self.names(tag, request) {
            return (ResponseHead(status: .notModified, fields: fields), .none)
        }
        if isCompressed { fields.append(.contentEncoding, "gzip") }
        let bytes = isCompressed ? file.compressed ?? file.bytes : file.bytes
        return (ResponseHead(status: .ok, fields: fields), .bytes(bytes))
    }

    /// Returns the redirect to the folder.
    ///
    /// It is relative: a proxy in front may have removed a base path from the request.
    private static func redirect(_ request: RequestHead) -> (ResponseHead, ResponseBody) {
        var fields = Fields()
        fields.append(.location, "console/" + (request.query.map { "?\($0)" } ?? ""))
        fields.append(.cacheControl, "no-cache")
        fields.append("Referrer-Policy", "no-referrer")
        return (ResponseHead(status: .permanentRedirect, fields: fields), .none)
    }

    /// True if the client has this version (RFC 9110 section 13.1.2).
    static func names(_ tag: String, _ request: RequestHead) -> Bool {
        request.fields.listMembers(.ifNoneMatch).contains {
            $0 == "*" || $0 == tag || $0 == "W/" + tag
        }
    }

    /// Returns the fields that all files have.
    ///
    /// Browsers revalidate files each time, which costs a 304.
    private static func fields(_ type: String) -> Fields {
        var fields = Fields()
        fields.append(.contentType, type + "; charset=utf-8")
        fields.append(.cacheControl, "no-cache")
        fields.append("Content-Security-Policy", policy)
        fields.append("X-Content-Type-Options", "nosniff")
        fields.append("Referrer-Policy", "no-referrer")
        fields.append("Cross-Origin-Opener-Policy", "same-origin")
        fields.append("Cross-Origin-Resource-Policy", "same-origin")
        return fields
    }

    private static func name(of path: String) -> String {
        guard path.hasPrefix(folder), path.utf8.count > folder.utf8.count else {
            return "index.html"
        }
        return String(path.dropFirst(folder.count))
    }

    /// Returns a file, prepared at the first request.
    private func file(_ name: String, atRoot: Bool) -> File? {
        let key = atRoot ? "/" + name : name
        if let known = files.withLock({ $0[key] }) { return known }
        guard var bytes = Self.embedded(name) else { return nil }
        if name == "index.html" { bytes = Self.page(bytes, atRoot: atRoot) }
        var file = File(
            type: Self.type(of: name), bytes: bytes, tag: TextDigest.of(bytes), compressed: nil)
        if let small = compress(bytes), small.count < bytes.count { file.compressed = small }
        files.withLock { $0[key] = file }
        return file
    }

    /// Returns the page with the paths of its files: it is served at two paths, and `base-uri`
    /// forbids a base element.
    private static func page(_ bytes: [UInt8], atRoot: Bool) -> [UInt8] {
        let text = String(decoding: bytes, as: UTF8.self)
        let parts = text.split(separator: "{files}", omittingEmptySubsequences: false)
        return Array(parts.joined(separator: atRoot ? "console/" : "").utf8)
    }

    private static func type(of name: String) -> String {
        if name.hasSuffix(".html") { return "text/html" }
        return name.hasSuffix(".css") ? "text/css" : "text/javascript"
    }

    /// The names of the embedded files.
    package static var names: [String] {
        (0..<console_asset_count()).map { String(cString: console_asset_name($0)) }
    }

    /// Returns the bytes of an embedded file.
    package static func embedded(_ name: String) -> [UInt8]? {
        guard let place = names.firstIndex(of: name) else { return nil }
        return Array(
            UnsafeBufferPointer(
                start: console_asset_bytes(place), count: console_asset_length(place)))
    }
}

/// A short digest for entity tags: FNV-1a with 64 bits; it has to distinguish versions, not to
/// resist forgery.
enum TextDigest {
    static func of(_ bytes: [UInt8]) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }
}
