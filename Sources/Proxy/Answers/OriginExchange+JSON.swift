/// The JSON texts of HLS, rewritten for the session: steering manifests, asset lists and their like.
import CachePolicy
import HLS
import Routing
import URISyntax

extension OriginExchange {
    /// The text with each URI as a link of this daemon.
    ///
    /// What a pathway clone names outright is written with scheme and host, because players do not
    /// resolve it; everything else as in playlists.
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
                let writer = reference.tag == .streamInf ? absoluteLinks : links
                writer.append(reference, to: &output)
                return true
            })
        core.report(made.unusable, in: resource)
        return PreparedPlaylist(
            bytes: made.bytes, facts: PlaylistFacts(isLive: false), form: .origin)
    }
}
