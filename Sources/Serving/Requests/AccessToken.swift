// Removes the access token from requests to origins: it must not leave the daemon.
import HTTP
import Model
import Routing
import URISyntax

/// The access token as an argument of a request's query.
enum AccessToken {
    static let argument = "token"
    /// The most values that are compared; each comparison takes two digests.
    static let mostOffered = 16

    /// Returns the URL without the arguments `token` whose value is the access token; the URL itself
    /// if the daemon has none.
    ///
    /// An origin's own argument of that name has another value and stays.
    static func stripped(_ url: AbsoluteURL, of token: String?) -> AbsoluteURL {
        guard let token, let query = url.queryRange else { return url }
        let items = url.bytes[query].split(separator: 0x26, omittingEmptySubsequences: false)
        let kept = items.filter { !isToken($0, token) }
        guard kept.count < items.count else { return url }
        var bytes = Array(url.bytes[..<(query.lowerBound - 1)])
        if !kept.isEmpty { bytes += [0x3F] + Array(kept.joined(separator: [0x26])) }
        return (try? AbsoluteURL(bytes: bytes)) ?? url
    }

    /// Returns an entry without the access token in its URL, and in the headers that a player wrote
    /// behind that (`URL|Name=value&token=...`).
    static func stripped(_ entry: Entry, of token: String?) -> Entry {
        guard let token else { return entry }
        var kept = entry
        kept.url = stripped(entry.url, of: token)
        kept.headers.removeAll {
            ASCII.lowercased($0.name) == argument && Signer.isEqual($0.value, token)
        }
        return kept
    }

    /// Returns the argument of a request's query that has the access token, as it was sent; nil if
    /// there is none.
    static func argumentText(of request: RequestHead, with token: String?) -> String? {
        guard let token else { return nil }
        return offered(by: request).first { Signer.isEqual($0.value(), token) }?.text
    }

    /// Returns the first arguments of a request's query that may have the access token.
    ///
    /// Their names are compared decoded, as those of the arguments that do not reach an origin are.
    static func offered(by request: RequestHead) -> ArraySlice<QueryItem> {
        request.queryItems.filter { $0.name() == argument }.prefix(mostOffered)
    }

    private static func isToken(_ item: ArraySlice<UInt8>, _ token: String) -> Bool {
        guard let mark = item.firstIndex(of: 0x3D),
            PercentCoding.decode(String(decoding: item[..<mark], as: UTF8.self)) == argument
        else { return false }
        let item = QueryItem(
            rawName: argument, rawValue: String(decoding: item[(mark + 1)...], as: UTF8.self))
        return Signer.isEqual(item.value(), token) || Signer.isEqual(item.rawValue ?? "", token)
    }

    /// True if a referring URL contains the token, plain or percent-encoded.
    static func isNamed(in referrer: String?, _ token: String) -> Bool {
        guard let referrer else { return false }
        return referrer.contains(token) || PercentCoding.decode(referrer).contains(token)
    }
}
