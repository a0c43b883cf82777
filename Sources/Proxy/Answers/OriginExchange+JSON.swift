import CachePolicy
import HLS
import HTTP
import Routing
import Store
import URISyntax

/// The JSON texts of HLS, rewritten for the session: steering manifests, asset lists and their like.
extension OriginExchange {
    /// The text with each URI as a link of this daemon.
    ///
    /// What a pathway clone names outright, assets and schedules are written with scheme and host:
    /// players do not resolve them (8216bis, 7.1 and appendix D). Everything else as in playlists.
    func rewriteJSON(
        _ body: [UInt8], base: AbsoluteURL
    ) throws(PlaylistError) -> PreparedPlaylist {
        let links = linkWriter(
            prefix: linkPrefix(isAbsolute: core.settings.writesAbsoluteURLs))
        let absoluteLinks = linkWriter(prefix: linkPrefix(isAbsolute: true))
        let made = try JSONRewriter.rewrite(
            body, base: base,
            host: { host in
                guard let root = PathwayMove.root(of: host, base: base) else {
                    return (PathwayMove.plainParameter, [0x31])
                }
                return (PathwayMove.hostParameter, links.handleText(of: root, for: .pathwayHost))
            },
            map: { reference, output in
                // What leads to us already is left alone: a second handle around it would loop.
                if core.isOwn(reference.url) { return false }
                let isAbsolute = reference.tag == .streamInf || reference.tag == .dateRange
                let writer = isAbsolute ? absoluteLinks : links
                writer.append(reference, to: &output)
                return true
            })
        core.report(made.unusable, in: resource)
        return PreparedPlaylist(
            bytes: made.bytes, facts: PlaylistFacts(isLive: false), form: .origin)
    }

    // MARK: JSON that was opened as an entry

    /// The longest JSON in bytes that is looked into where no playlist says what it is.
    private static let longestEntry: Int64 = 1 << 20

    /// Judges JSON that no playlist led to, by its type and its first bytes.
    ///
    /// Costs one look at the role for all that a playlist names.
    func judgeEntry(_ object: StoredObject, _ facts: ObjectFacts) -> EntryText {
        guard resource.role == nil, resource.kind == nil, facts.head.status == .ok,
            !facts.head.isPlaylist,
            object.total ?? 0 <= Self.longestEntry,
            let type = facts.head.fields.first(.contentType).flatMap(MediaType.init),
            type.subtype == "json" || type.subtype.hasSuffix("+json")
                || type.subtype == "vnd.apple.steering-list"
        else { return .other }
        if object.isComplete {
            if let known = facts.isTextOfHLS { return known ? .text : .other }
            let body = try? readBody(of: object, count: Int(object.total ?? 0))
            let isText = body.map(JSONRewriter.isDocumentOfHLS) ?? false
            facts.isTextOfHLS = isText
            return isText ? .text : .other
        }
        guard case .present(let count) = object.state(at: 0),
            let start = object.shortBytes(0..<min(count, 4_096)),
            JSONRewriter.mayBeDocumentOfHLS(start)
        else { return .other }
        return .open
    }

    /// What JSON that was opened as an entry is.
    enum EntryText {
        /// A text of HLS, which is rewritten.
        case text
        /// Perhaps one: the rest of the body tells.
        case open
        /// Passed on as it is.
        case other
    }

    /// Goes on with the entry as with JSON that a playlist names.
    func becomeText() { resource = resource.changing { $0.role = .json } }
}
