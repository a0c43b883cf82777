import CachePolicy
import HLS
import HTTP
import HTTPServer
import Lookahead
import Posix
import Reactor
import Routing
import Store
import URISyntax

/// Playlists and the JSON texts of HLS: read back from the store, rewritten for the session, answered from memory.
extension OriginExchange {
    /// What stands before each written URL: a base path, or scheme, host and base path.
    private var linkPrefix: String { linkPrefix(isAbsolute: core.settings.writesAbsoluteURLs) }

    func linkPrefix(isAbsolute: Bool) -> String {
        var base = core.settings.basePath
        var scheme = "http"
        var host = request.host ?? ""
        if core.settings.trustsForwarded {
            if let prefix = request.fields.first(.xForwardedPrefix), Self.isPath(prefix) {
                base = prefix.hasSuffix("/") ? String(prefix.dropLast()) : prefix
            }
            if request.fields.first(.xForwardedProto) == "https" { scheme = "https" }
            if let forwarded = request.fields.first(.xForwardedHost), Self.isHost(forwarded) {
                host = forwarded
            }
        }
        return isAbsolute && !host.isEmpty ? "\(scheme)://\(host)\(base)" : base
    }

    private static func isPath(_ text: String) -> Bool {
        text.hasPrefix("/") && !text.hasPrefix("//")
            && text.utf8.allSatisfy { PercentCoding.Allowed.path.contains($0) }
    }

    private static func isHost(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { PercentCoding.Allowed.host.contains($0) || $0 == 0x3A }
    }

    private var rewriteKey: ObjectFacts.RewriteKey {
        // The JSON texts hold absolute URLs in any case.
        let prefix = resource.role == .json ? linkPrefix(isAbsolute: true) : linkPrefix
        // What was asked for names the list in paths, wherever it was found to be.
        let list = asked.listKey
        return ObjectFacts.RewriteKey(
            session: resource.session.id, prefix: prefix,
            list: list == resource.listKey ? nil : list)
    }

    /// The prepared text of a key; nil where it holds URLs with another host than this request's.
    ///
    /// Those few texts are kept by host; `key` is then the one to keep a new text under.
    private func prepared(
        _ facts: ObjectFacts, _ key: inout ObjectFacts.RewriteKey
    ) -> PreparedPlaylist? {
        guard let known = facts.prepared(key) else { return nil }
        guard let host = known.host else { return known }
        let own = linkPrefix(isAbsolute: true)
        if host == own { return known }
        key.host = own
        return facts.prepared(key)
    }

    /// Whether a playlist was fetched by another session and is not to be shared.
    ///
    /// `private` and `no-store` are how origins mark playlists made for one viewer, with
    /// advertisements for example; the segments that they name are everybody's. What this session
    /// has got already is its own.
    func isAnothers(_ facts: ObjectFacts) -> Bool {
        facts.head.isPlaylist && facts.isOneViewers
            && !resource.isKept(for: resource.session) && facts.prepared(rewriteKey) == nil
    }

    /// The rewritten form of a stored playlist, from memory if it is there.
    func prepare(_ object: StoredObject, _ facts: ObjectFacts) -> Result<
        PreparedPlaylist, ProxyFailure
    > {
        let form = resource.role == .json ? .origin : form(of: object, facts)
        var key = rewriteKey
        key.form = form
        if let known = prepared(facts, &key) { return .success(known) }
        let body: [UInt8]
        let base: AbsoluteURL
        do {
            body = try read(object)
            base = try resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        } catch {
            return .failure(
                ProxyFailure(
                    .us, .internalServerError, "a stored playlist could not be read: \(error)",
                    allowsStale: true))
        }
        do throws(PlaylistError) {
            var options = rewriteOptions
            if let list = key.list { core.live.adopt(list, as: resource.listKey) }
            try core.noteNames(in: (body, base), of: resource, object, options: options)
            options.assumesMap = options.assumesMap || core.live.hasMap(resource.listKey)
            let text = try transformed(body, base: base, to: form)
            let prepared =
                resource.role == .json
                ? try rewriteJSON(text, base: base)
                : try rewrite(text, base: base, to: key, options, of: object.generation)
            facts.keep(prepared, for: key, within: core.rewritten)
            return .success(prepared)
        } catch {
            return .failure(refusal(error, originStatus: facts.head.status))
        }
    }

    /// What a player is told of a playlist that cannot be passed on.
    private func refusal(_ error: PlaylistError, originStatus: HTTPStatus) -> ProxyFailure {
        if case .missingQueryParameter(_, let name) = error,
            SessionTable.starts(resource.session, at: resource.url)
        {
            return ProxyFailure(
                .client, .badRequest,
                "\(resource.url.redacted) is a playlist that takes a variable from the query "
                    + "parameter '\(name)': open it with that parameter in its URL")
        }
        return ProxyFailure(
            .origin, .badGateway, "\(resource.url.redacted): \(error.description)",
            originStatus: originStatus, allowsStale: true)
    }

    func linkWriter(prefix: String) -> LinkWriter {
        LinkWriter(
            session: resource.session.id, prefix: prefix, signer: core.signer,
            handle: core.handle(for:session:epoch:))
    }

    private func rewrite(
        _ body: [UInt8], base: AbsoluteURL, to key: ObjectFacts.RewriteKey,
        _ known: PlaylistRewriter.Options, of generation: UInt64
    ) throws(PlaylistError) -> PreparedPlaylist {
        let form = key.form
        let links = linkWriter(prefix: key.prefix)
        // Players resolve nothing in date ranges (8216bis, appendix D).
        let host = linkPrefix(isAbsolute: true)
        var absoluteLinks: LinkWriter?
        var hasMap = false
        let epochs = core.live.epochs(in: resource.listKey)
        let shift = namesOfShifted(form)
        let names = core.live.names(
            in: resource.listKey, named: asked.listKey, isShifted: shift != nil)
        var head = KeptHead(core.settings, count: core.keepHead(of: base), of: body)
        // Lists name one host a thousand times in a row: it is judged once.
        var judged: (url: AbsoluteURL, isOwn: Bool)?
        // And one folder, which is nobody's that leads to us.
        var others: URLFolder?
        // Other forms than the origin's have other segments.
        let draws = form == .origin && core.tap.draws(resource, generation: generation, exchange)
        var sketch = draws ? MediaPicture.Sketch() : nil
        var options = known
        // Links hold no quotes and no control bytes: their prefix is a checked host and path.
        options.trustsMap = true
        options.writesOffsets = names != nil
        // Handed over where it stands, so that what it remembers need not be checked for overlapping
        // accesses a thousand times.
        let made = try PlaylistRewriter.rewrite(body, base: base, options: options) {
            (reference, output) -> Bool in
            sketch?.add(reference)
            var isOwn = false
            if others == nil || reference.place.folder !== others {
                let neighbour = reference.place.neighbour
                if let judged, judged.url.sharesAuthority(with: neighbour) {
                    isOwn = judged.isOwn
                } else {
                    isOwn = core.isOwn(neighbour)
                    judged = (neighbour, isOwn)
                }
                others = isOwn ? nil : reference.place.folder
            }
            // What leads to us already is left alone: a second handle around it would loop.
            if isOwn { return false }
            if reference.hasMap { hasMap = true }
            let epoch =
                shift.map { self.epoch(of: reference, in: $0) }
                ?? (epochs.isEmpty ? .first : self.epoch(of: reference, epochs))
            switch head?.link(of: reference) ?? .kept {
            case .origins: output.append(contentsOf: reference.url.bytes)
            case .kept where reference.tag == .dateRange:
                let writer = absoluteLinks ?? linkWriter(prefix: host)
                absoluteLinks = writer
                writer.append(reference, in: epoch, to: &output)
            case let link:
                let place = names?.place(of: reference)
                if let names, let place {
                    links.append(reference, at: place, of: names.list, in: epoch, to: &output)
                } else {
                    links.append(reference, in: epoch, to: &output)
                }
                guard link == .unkept else { break }
                output.append(contentsOf: place == nil ? KeptHead.suffix : KeptHead.furtherSuffix)
            }
            return true
        }
        core.report(made.unusable, in: resource)
        if !made.unusable.segmentLines.isEmpty, made.summary.hasEndList {
            let shorter = try OfflinePlaylist.leavingOut(
                segments: made.unusable.segmentLines, of: body, base: base, options: known)
            return try rewrite(shorter, base: base, to: key, known, of: generation)
        }
        drawn = sketch.map { (generation, DrawnList(made.summary, $0)) }
        core.counters.add(.playlistsRewritten)
        if resource.mayStore, !resource.isMounted, resource.live.delivery == nil {
            core.revival.remember(resource)
        }
        if made.summary.kind == .media {
            let slides = made.summary.isLive && made.summary.playlistType != .event
            core.playlistMemory.remember(isLive: slides, of: resource.session.id)
        }
        if made.summary.kind == .multivariant {
            core.playlistMemory.remember(made.definedVariables, of: resource.session.id)
        } else if hasMap, !made.summary.isSkipDelta {
            core.playlistMemory.rememberMap(memoryKey)
        }
        return PreparedPlaylist(
            bytes: made.bytes, facts: Self.facts(made.summary), form: form,
            host: absoluteLinks == nil ? nil : host)
    }

    private var memoryKey: PlaylistMemory.Key {
        PlaylistMemory.Key(list: resource.url, session: resource.session.id)
    }

    /// What is known of the playlist beside its text.
    var rewriteOptions: PlaylistRewriter.Options {
        var options = PlaylistRewriter.Options()
        options.limits = core.settings.playlistLimits
        let inherited = core.playlistMemory.knownVariables(of: resource.session.id)
        options.inheritedVariables = inherited ?? [:]
        options.knowsMultivariant = inherited != nil
        options.assumesMap = core.playlistMemory.hasMap(memoryKey)
        return options
    }

    static func facts(_ summary: PlaylistSummary) -> PlaylistFacts {
        PlaylistFacts(
            isLive: summary.isLive, targetDuration: summary.targetDuration.map { Interval($0) },
            partTarget: summary.partTarget.map { Interval($0) })
    }

    /// A whole stored playlist; blocks for the page cache only, since it was just written or is read
    /// often.
    func read(_ object: StoredObject) throws(SystemError) -> [UInt8] {
        try readBody(of: object, count: Int(object.total ?? 0))
    }

    /// The gzip form, for players that take it and lists that gain by it; nil for the plain one.
    private func compressed(_ playlist: PreparedPlaylist, _ facts: ObjectFacts) -> PreparedPlaylist?
    {
        guard playlist.bytes.count >= Gzip.worthwhile, ContentCoding.acceptsGzip(request.fields)
        else { return nil }
        var key = rewriteKey
        key.form = playlist.form
        key.host = playlist.host
        key.isCompressed = true
        if let known = facts.prepared(key) { return known }
        guard let bytes = Gzip.compress(playlist.bytes) else { return nil }
        let made = PreparedPlaylist(
            bytes: bytes, facts: playlist.facts, form: playlist.form, host: playlist.host)
        facts.keep(made, for: key, within: core.rewritten)
        return made
    }

    /// Sends a rewritten playlist or JSON text: always whole, whatever range was asked for.
    func servePlaylist(_ playlist: PreparedPlaylist, _ facts: ObjectFacts, _ how: Serving) {
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        let coded = compressed(playlist, facts)
        let bytes = (coded ?? playlist).bytes
        let isCoded = coded != nil
        keepForRepetition(facts, how, playlist: playlist, content: .text(bytes)) { now, how in
            builder.at(now).textHead(facts, isCompressed: isCoded, how)
        }
        var head = builder.textHead(facts, isCompressed: isCoded, how)
        noteCompleteness(in: &head.fields)
        deliver(bytes, head, how)
    }

    /// Sends a text.
    func deliver(_ text: [UInt8], _ head: ResponseHead, _ how: Serving) {
        countBytes(how)
        exchange.respond(head, body: .bytes(text))
    }
}

extension Resource {
    /// The base of a playlist with this resource's user information, which is not stored, and
    /// which what the playlist names at the same origin needs again.
    func withUserinfo(_ base: AbsoluteURL) throws(URIError) -> AbsoluteURL {
        guard let userinfo = url.userinfoRange, base.origin == url.origin else { return base }
        var bytes = base.bytes
        bytes.insert(contentsOf: url.bytes[userinfo] + [0x40], at: base.hostRange.lowerBound)
        return try AbsoluteURL(bytes: bytes)
    }

    private func ownKey(_ session: Session) -> CacheKey {
        CacheKey(url: cacheKey.url, audience: .session(session.id.text))
    }

    /// Whether the key is the session's own.
    func isKept(for session: Session) -> Bool { cacheKey == ownKey(session) }

    /// The same resource under a key of the session's own.
    func kept(for session: Session) -> Resource {
        changing { $0.cacheKey = ownKey(session) }
    }
}
