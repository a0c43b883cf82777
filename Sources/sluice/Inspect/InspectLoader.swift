// Gets playlists for `sluice inspect`: from an origin by libcurl, or from files.
import CommandSupport
import CCurl
import Glibc
import HLS
import HTTP
import URISyntax

/// Why a playlist of the tree is not there.
struct InspectFailure: Error {
    let text: String
}

/// Blocks; one transfer at a time.
struct InspectLoader {
    /// Stands in URLs for files beside the one that the user named; no DNS knows it (RFC 6761).
    private static let fileHost = "file.invalid"

    /// Request header lines.
    var fields: [String] = []
    /// Files that are read in place of URLs.
    var files: [String: String] = [:]
    /// Whether URLs at `fileHost` are paths of files.
    var readsFiles = false

    /// What arrived, bounded.
    private final class Body {
        var bytes: [UInt8] = []
        var isTooLong = false
    }

    /// The playlist at a URL and the URL it came from in the end.
    func load(_ url: AbsoluteURL) -> Result<(body: [UInt8], url: AbsoluteURL), InspectFailure> {
        if let file = files[url.text] { return Self.read(file).map { ($0, url) } }
        if readsFiles, url.host == Self.fileHost {
            let path = PercentEncoding.decode(url.bytes[url.pathRange])
            return Self.read(String(decoding: path, as: UTF8.self)).map { ($0, url) }
        }
        return fetch(url)
    }

    /// A URL as it is shown: files by their path.
    func name(_ text: String) -> String {
        let prefix = "http://\(Self.fileHost)"
        return readsFiles && text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
    }

    // MARK: Files

    /// The absolute path of a file that exists; nil for one that does not.
    static func absolutePath(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The URL that stands for a file.
    static func url(ofFile path: String) throws(URIError) -> AbsoluteURL {
        var bytes = Array("http://\(fileHost)".utf8)
        for byte in path.utf8 {
            // What would begin a query, a fragment or an escape.
            if [0x25, 0x3F, 0x23].contains(byte) || byte < 0x20 {
                PercentEncoding.append(byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return try AbsoluteURL(bytes: bytes)
    }

    private static func read(_ path: String) -> Result<[UInt8], InspectFailure> {
        guard let file = fopen(path, "rb") else {
            return .failure(
                InspectFailure(text: "cannot be read: \(String(cString: strerror(errno)))"))
        }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        // One byte more than is taken is enough to be refused.
        while bytes.count <= PlaylistLimits.standard.byteCount {
            let count = fread(&chunk, 1, chunk.count, file)
            if count == 0 { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return .success(bytes)
    }

    // MARK: Origins

    private func fetch(
        _ url: AbsoluteURL
    ) -> Result<(body: [UInt8], url: AbsoluteURL), InspectFailure> {
        guard let easy = curl_easy_init() else {
            return .failure(InspectFailure(text: "libcurl does not start"))
        }
        defer { curl_easy_cleanup(easy) }
        var list: UnsafeMutablePointer<curl_slist>?
        for line in fields { list = curl_slist_append(list, line) }
        defer { curl_slist_free_all(list) }
        setOptions(of: easy, url)
        _ = sluice_curl_set_list(easy, CURLOPT_HTTPHEADER, list)
        let body = Body()
        sluice_curl_set_write(
            easy,
            { bytes, size, count, context in
                guard let context, let bytes else { return 0 }
                let body = Unmanaged<Body>.fromOpaque(context).takeUnretainedValue()
                let raw = UnsafeRawBufferPointer(start: bytes, count: size * count)
                body.bytes.append(contentsOf: raw)
                body.isTooLong = body.bytes.count > PlaylistLimits.standard.byteCount
                return body.isTooLong ? 0 : size * count
            }, Unmanaged.passUnretained(body).toOpaque())
        let result = withExtendedLifetime(body) { curl_easy_perform(easy) }
        if body.isTooLong {
            return .failure(InspectFailure(text: "is longer than any playlist that is taken"))
        }
        guard result == CURLE_OK else {
            return .failure(InspectFailure(text: String(cString: curl_easy_strerror(result))))
        }
        let status = sluice_curl_info_long(easy, CURLINFO_RESPONSE_CODE)
        guard status == 200 else {
            return .failure(InspectFailure(text: "the origin answered \(status)"))
        }
        let final = sluice_curl_info_string(easy, CURLINFO_EFFECTIVE_URL).flatMap {
            try? AbsoluteURL(String(cString: $0))
        }
        return .success((body.bytes, final ?? url))
    }

    private func setOptions(of easy: UnsafeMutableRawPointer, _ url: AbsoluteURL) {
        _ = sluice_curl_set_string(easy, CURLOPT_URL, url.requestForm)
        _ = sluice_curl_set_long(easy, CURLOPT_PATH_AS_IS, 1)
        _ = sluice_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = sluice_curl_set_string(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
        _ = sluice_curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 1)
        _ = sluice_curl_set_long(easy, CURLOPT_MAXREDIRS, 10)
        _ = sluice_curl_set_string(easy, CURLOPT_PROXY, "")
        _ = sluice_curl_set_string(easy, CURLOPT_ACCEPT_ENCODING, "")
        _ = sluice_curl_set_string(easy, CURLOPT_USERAGENT, "sluice/\(sluiceVersion)")
        _ = sluice_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        _ = sluice_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT, 10)
        _ = sluice_curl_set_long(easy, CURLOPT_TIMEOUT, 30)
        guard let userinfo = url.userinfo else { return }
        // requestForm leaves it out.
        let plain = PercentEncoding.decode(Array(userinfo.utf8)[...])
        _ = sluice_curl_set_string(
            easy, CURLOPT_USERPWD, String(decoding: plain, as: UTF8.self))
    }
}
