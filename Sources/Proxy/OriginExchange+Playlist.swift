/// Playlists: read back from the store, rewritten for the session, answered from memory.
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Posix
import Reactor
import Store
import URISyntax

extension OriginExchange {
    /// What stands before each written URL: a base path, or scheme, host and base path.
    private var linkPrefix: String {
        var base = core.settings.basePath
        var scheme = "http"
        var host = request.host ?? ""
        if core.settings.trustsForwarded {
            if let prefix = request.fields.first(.xForwardedPrefix), Self.isPath(prefix) {
                base = prefix.hasSuffix("/") ? String(prefix.dropLast()) : prefix
            }
            if request.fields.first(.xForwardedProto) == "https" { scheme = "https" }
            if let forwarded = request.fields.first(.xForwardedHost), Self.isHost(forwarded) { host = forwarded }
        }
        return core.settings.writesAbsoluteURLs && !host.isEmpty ? "\(scheme)://\(host)\(base)" : base
    }

    private static func isPath(_ text: String) -> Bool {
        text.hasPrefix("/") && !text.hasPrefix("//")
            && text.utf8.allSatisfy { PercentCoding.Allowed.path.contains($0) }
    }

    private static func isHost(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { PercentCoding.Allowed.host.contains($0) || $0 == 0x3A }
    }

    /// The rewritten form of a stored playlist, from memory if it is there.
    func prepare(_ object: StoredObject, _ facts: ObjectFacts) -> Result<PreparedPlaylist, ProxyFailure> {
        let key = ObjectFacts.RewriteKey(session: resource.session.id, prefix: linkPrefix)
        if let known = facts.prepared(key) { return .success(known) }
        let body: [UInt8]
        let base: AbsoluteURL
        do {
            body = try read(object)
            base = try AbsoluteURL(facts.head.finalURL)
        } catch {
            return .failure(
                ProxyFailure(.us, .internalServerError, "a stored playlist could not be read: \(error)", allowsStale: true))
        }
        let links = LinkWriter(
            session: resource.session.id, prefix: key.prefix, signer: core.signer,
            handle: core.handle(for:session:))
        var options = PlaylistRewriter.Options()
        options.limits = core.settings.playlistLimits
        do throws(PlaylistError) {
            let made = try PlaylistRewriter.rewrite(body, base: base, options: options) { reference, output in
                // What leads to us already is left alone: a second handle around it would loop.
                if core.isOwn(reference.url) { return false }
                links.append(reference.url, role: reference.role, hasMap: reference.hasMap, to: &output)
                return true
            }
            core.counters.add(.playlistsRewritten)
            let prepared = PreparedPlaylist(bytes: made.bytes, facts: Self.facts(made.summary))
            facts.keep(prepared, for: key)
            return .success(prepared)
        } catch {
            return .failure(
                ProxyFailure(
                    .origin, .badGateway, "\(resource.url.redacted): \(error.description)",
                    originStatus: facts.head.status, allowsStale: true))
        }
    }

    private static func facts(_ summary: PlaylistSummary) -> PlaylistFacts {
        PlaylistFacts(
            isLive: summary.isLive, targetDuration: summary.targetDuration.map(interval),
            partTarget: summary.partTarget.map(interval))
    }

    private static func interval(_ duration: Duration) -> Interval {
        let parts = duration.components
        return Interval(nanoseconds: parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000)
    }

    /// Reads a whole stored playlist; blocks for the page cache only, since it was just written or
    /// is read often.
    private func read(_ object: StoredObject) throws(SystemError) -> [UInt8] {
        let length = Int(object.total ?? 0)
        var body = [UInt8](repeating: 0, count: length)
        let outcome: Result<Int, SystemError> = body.withUnsafeMutableBytes { raw in
            do throws(SystemError) {
                return .success(try readAll(into: raw, from: object.descriptor.number, at: object.bodyOffset))
            } catch {
                return .failure(error)
            }
        }
        let count = try outcome.get()
        guard count == length else { throw SystemError("pread", code: 5, subject: "the file is short") }
        return body
    }

    /// Sends a rewritten playlist: always whole, whatever range was asked for.
    func servePlaylist(_ playlist: PreparedPlaylist, _ facts: ObjectFacts, _ how: Serving) {
        let builder = AnswerHead(
            request: request, resource: resource, settings: core.settings, now: exchange.loop.wallNow)
        var fields = Fields()
        fields.append(.contentType, ContentTypes.playlist)
        fields.append(.cacheControl, "no-cache")
        builder.finish(&fields, facts.head, how.disposition, how.ttl, how.status)
        let isHit = how.disposition == .hit
        exchange.onFinish = { [core] outcome in
            core.counters.add(.bytesToPlayers, outcome.bodyBytes)
            if isHit { core.counters.add(.bytesFromStore, outcome.bodyBytes) }
        }
        exchange.respond(ResponseHead(status: .ok, fields: fields), body: .bytes(playlist.bytes))
    }
}
