// Removes the access token from requests to origins: it must not leave the daemon.
import HTTP
import Model
import Routing
import URISyntax

/// The access token as an argument of a request's query, and as credentials.
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

    /// Returns what a value of `Authorization` offers as the token; nil for an unsupported scheme.
    ///
    /// That is the token of Bearer (RFC 6750), or the password of Basic (RFC 7617) with any user
    /// name.
    static func offered(by credentials: String) -> String? {
        bearer(credentials) ?? password(credentials)
    }

    /// True if the credentials of a request contain the token, so that they are not the origin's.
    static func isAuthorization(of request: RequestHead, _ token: String) -> Bool {
        request.fields.all(.authorization).prefix(mostOffered).contains { credentials in
            offered(by: credentials).map { Signer.isEqual($0, token) } ?? false
        }
    }

    private static func bearer(_ credentials: String) -> String? {
        guard ASCII.equalIgnoringCase(String(credentials.prefix(7)), "bearer ") else { return nil }
        return String(credentials.dropFirst(7))
    }

    /// Returns the password of Basic credentials, those of a proxy too; nil for other schemes.
    static func password(_ credentials: String) -> String? {
        guard isBasic(credentials), let pair = Base64.decode(credentials.utf8.dropFirst(6)),
            let colon = pair.firstIndex(of: 0x3A)
        else { return nil }
        return String(decoding: pair[(colon + 1)...], as: UTF8.self)
    }

    /// True for credentials that browsers keep, and send with requests of other sites' pages too.
    static func isBasic(_ credentials: String) -> Bool {
        ASCII.equalIgnoringCase(String(credentials.prefix(6)), "basic ")
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
