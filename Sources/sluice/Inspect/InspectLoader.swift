// Loads playlists for `sluice inspect`: from an origin, or from files.
import CommandSupport
import Glibc
import HLS
import HTTP
import Posix
import URISyntax

/// Why a playlist of the tree could not be loaded.
struct InspectFailure: Error {
    let text: String
}

/// Loads playlists, blocking; one transfer at a time.
struct InspectLoader {
    /// The host in URLs of files next to the one that the user named; never in DNS (RFC 6761).
    private static let fileHost = "file.invalid"

    /// Request header lines.
    var fields: [String] = []
    /// Files that are read in place of URLs.
    var files: [String: String] = [:]
    /// True if URLs at `fileHost` are paths of files.
    var readsFiles = false
    /// The way to the origin of each request; nil for the direct one.
    var way: BlockingClient.Way?
    /// What stands in front of the daemon that is asked; nil for an origin.
    var front: FrontProxy?
    /// What all requests together may spend; nil for a limit of each alone.
    var budget: TransferBudget?
    /// Told of each answer, also of those that are no playlists.
    var observe: ((AbsoluteURL, BlockingClient.Answer, [UInt8]) -> Void)?

    /// Returns the playlist at a URL, and its URL after redirects.
    func load(_ url: AbsoluteURL) -> Result<(body: [UInt8], url: AbsoluteURL), InspectFailure> {
        if let file = files[url.text] { return Self.read(file).map { ($0, url) } }
        if readsFiles, url.host == Self.fileHost {
            let path = PercentCoding.decode(url.bytes[url.pathRange])
            return Self.read(String(decoding: path, as: UTF8.self)).map { ($0, url) }
        }
        return fetch(url)
    }

    /// Returns a URL in its displayed form: files by their path.
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

    /// Returns the URL that represents a file.
    static func url(ofFile path: String) throws(URIError) -> AbsoluteURL {
        var bytes = Array("http://\(fileHost)".utf8)
        for byte in path.utf8 {
            // These would begin a query, a fragment or an escape.
            if [0x25, 0x3F, 0x23].contains(byte) || byte < 0x20 {
                PercentCoding.append(byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return try AbsoluteURL(bytes: bytes)
    }

    private static func read(_ path: String) -> Result<[UInt8], InspectFailure> {
        do throws(InputFile.Fault) {
            return .success(
                try InputFile.read(
                    path, atMost: PlaylistLimits.standard.byteCount, isPipeAllowed: true))
        } catch {
            // The report begins with the path.
            let text = "\(error)"
            return .failure(
                InspectFailure(
                    text: text.hasPrefix(path + " ")
                        ? String(text.dropFirst(path.count + 1)) : text))
        }
    }

    // MARK: Origins

    private func fetch(
        _ url: AbsoluteURL
    ) -> Result<(body: [UInt8], url: AbsoluteURL), InspectFailure> {
        let target = front?.target(of: url) ?? url
        var request = request(target)
        var limit = PlaylistLimits.standard.byteCount
        if let budget {
            guard let left = budget.next(now: .now()) else {
                return .failure(
                    InspectFailure(text: "was not requested: the limit of requests is reached"))
            }
            request.milliseconds = left.milliseconds
            request.connectSeconds = 5
            limit = min(limit, left.bytes)
        }
        do throws(BlockingClient.Failure) {
            let (answer, body) = try BlockingClient().body(of: request, upTo: limit)
            budget?.spend(body.count)
            observe?(url, answer, body)
            guard answer.status == 200 else {
                return .failure(InspectFailure(text: "the origin answered \(answer.status)"))
            }
            let end = answer.url.flatMap { try? AbsoluteURL($0) } ?? target
            return .success((body, end == target ? url : end))
        } catch {
            let text =
                error.kind == .stopped
                ? "is longer than the limit for playlists" : error.reason
            return .failure(InspectFailure(text: text))
        }
    }

    private func request(_ url: AbsoluteURL) -> BlockingClient.Request {
        var request = BlockingClient.Request("GET", url.requestForm)
        request.fields = fields
        request.followsRedirects = true
        request.way = way
        request.authority = front?.authority
        request.keepsFields = observe != nil
        request.decodesContent = true
        request.userAgent = "sluice/\(sluiceVersion)"
        request.connectSeconds = 10
        request.milliseconds = 30_000
        // `requestForm` omits the user information.
        request.credentials = url.userinfo.map { PercentCoding.decode($0) }
        return request
    }
}
