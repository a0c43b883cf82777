package import URISyntax

/// The reason why a body cannot be passed on as a playlist.
///
/// The fault is always the origin's, so a player gets status 502. Lines are counted from 1. Texts
/// of the playlist are shortened and stripped of user information and query, since descriptions end
/// up in logs and error pages.
package enum PlaylistError: Error, Hashable, Sendable {
    /// The body is longer than the limit; both in bytes.
    case tooLarge(byteCount: Int, limit: Int)
    /// The URLs of the playlist are longer together than the limit in bytes for a rewritten one.
    case outputTooLarge(line: Int, limit: Int)
    /// With the links of its reader, the playlist would be longer than the limit in bytes.
    case linksTooLong(line: Int, limit: Int)
    /// The body does not start with `#EXTM3U`; markup is most often an error page.
    case notAPlaylist(looksLikeMarkup: Bool)
    /// A line is longer than the limit in bytes.
    case lineTooLong(line: Int, limit: Int)
    /// There are more lines than the limit.
    case tooManyLines(limit: Int)
    /// A URI would make the player bypass the daemon or open a file; the scheme is in lower case.
    case forbiddenScheme(line: Int, tag: String, scheme: String)
    /// A URI cannot be resolved to a URL.
    case badURI(line: Int, tag: String, text: String, reason: URIError)
    /// A steering manifest or asset list is not JSON; the offset is in bytes.
    case notJSON(offset: Int)
    /// More keys of different KEYFORMATs are in force at the same time than the limit.
    case tooManyKeyFormats(line: Int, limit: Int)
    /// The keys that are in force at the same time are longer than the limit in bytes.
    case keysTooLong(line: Int, limit: Int)
    /// A URI refers to a variable that no EXT-X-DEFINE has defined.
    case undefinedVariable(line: Int, tag: String, name: String, isImported: Bool = false)
    /// EXT-X-DEFINE imports a variable that the multivariant playlist does not define.
    case missingImport(line: Int, name: String)
    /// EXT-X-DEFINE takes a variable from a query parameter that the playlist's URL does not have.
    case missingQueryParameter(line: Int, name: String)
    /// EXT-X-DEFINE defines a variable that is defined already (8216bis, 4.4.2.3).
    case duplicateVariable(line: Int, name: String)
    /// The names and values of all variables are longer than the limit in bytes.
    case variablesTooLong(line: Int, limit: Int)
}

extension PlaylistError: CustomStringConvertible {
    package var description: String {
        if case .notJSON(let offset) = self { return "origin sent bad JSON at byte \(offset)" }
        return "origin sent a bad playlist: " + reason
    }

    /// What is wrong, without saying whose playlist it is.
    package var reason: String {
        switch self {
        case .tooLarge(let byteCount, let limit):
            "\(byteCount) bytes are more than the limit of \(limit)"
        case .outputTooLarge(let line, let limit):
            "line \(line): rewritten it would be longer than the limit of \(limit) bytes"
        case .linksTooLong(let line, let limit):
            "line \(line): with the links of this session it would be longer than the limit of "
                + "\(limit) bytes"
        case .notAPlaylist(let looksLikeMarkup):
            looksLikeMarkup
                ? "it is a page of markup, not a playlist" : "it does not start with #EXTM3U"
        case .lineTooLong(let line, let limit):
            "line \(line) is longer than the limit of \(limit) bytes"
        case .notJSON(let offset):
            "byte \(offset) is not JSON"
        case .tooManyLines(let limit):
            "it has more than \(limit) lines"
        case .forbiddenScheme(let line, let tag, let scheme):
            "line \(line) (\(tag)): URIs with scheme '\(scheme)' are not passed to players"
        case .badURI(let line, let tag, let text, let reason):
            "line \(line) (\(tag)): '\(text)' cannot be resolved: \(reason)"
        case .tooManyKeyFormats(let line, let limit):
            "line \(line) (EXT-X-KEY): keys of more than \(limit) KEYFORMATs are in force at once"
        case .keysTooLong(let line, let limit):
            "line \(line) (EXT-X-KEY): the keys in force at once are longer than \(limit) bytes"
        case .undefinedVariable(let line, let tag, let name, let isImported):
            isImported
                ? "line \(line) (\(tag)): variable '\(name)' is one of the multivariant playlist: "
                    + "open the stream by that"
                : "line \(line) (\(tag)): variable '\(name)' is not defined"
        case .missingImport(let line, let name):
            "line \(line) (EXT-X-DEFINE): the multivariant playlist does not define the variable "
                + "'\(name)' that is imported"
        case .missingQueryParameter(let line, let name):
            "line \(line) (EXT-X-DEFINE): the URL of the playlist has no query parameter '\(name)'"
        case .duplicateVariable(let line, let name):
            "line \(line) (EXT-X-DEFINE): variable '\(name)' is defined twice"
        case .variablesTooLong(let line, let limit):
            "line \(line) (EXT-X-DEFINE): the variables are longer than \(limit) bytes together"
        }
    }
}

extension PlaylistError {
    /// Returns true if the same text may be readable for another session: it says that a value is
    /// to be had from elsewhere, and this session lacks it, or the links of this session are long.
    ///
    /// - Parameter linksCarrySession: whether the links have what the reader gave in them;
    ///   otherwise those of all sessions are as long.
    /// - Returns: whether it may.
    package func dependsOnReader(linksCarrySession: Bool) -> Bool {
        switch self {
        case .missingImport, .missingQueryParameter: true
        case .linksTooLong: linksCarrySession
        case .undefinedVariable(_, _, _, let isImported): isImported
        case .tooLarge, .notAPlaylist, .lineTooLong, .tooManyLines, .forbiddenScheme, .badURI,
            .notJSON, .tooManyKeyFormats, .keysTooLong, .duplicateVariable,
            .variablesTooLong, .outputTooLarge:
            false
        }
    }
}
