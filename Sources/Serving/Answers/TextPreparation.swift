// Making one rewritten text: all inputs are taken from the exchange, so that any thread can make
// it.
import Ahead
import CachePolicy
import HLS
import HTTP
import Lookahead
import Model
import Playlists
import Posix
import Routing
import Store
import TimeShifting
import URISyntax

/// The inputs for rewriting a stored playlist or JSON text for one session.
struct TextPreparation: Sendable {
    let core: ProxyCore
    let text: ServableText
    /// The list that the player requested, which link paths name.
    let asked: ObjectKey
    /// The key that the text is kept under, without its form.
    let key: ObjectFacts.RewriteKey
    /// A base path, or scheme, host and base path; links that carry a sealed session have its path
    /// behind it.
    let prefix: String
    /// Scheme, host and base path, for the URLs that must be absolute.
    let host: String
    /// True if look-ahead needs the list's resources.
    let wantsSketch: Bool
    let now: Monotonic

    /// The result.
    struct Product: Sendable {
        var playlist: PreparedPlaylist
        /// The list as look-ahead needs it, with the generation of the object; nil if the text was
        /// in memory or look-ahead did not need it.
        var sketched: (generation: UInt64, list: SketchedList)?
        /// Origins that a player will probably need next, to connect to early.
        var origins: [Origin] = []
        var isMultivariant = false
    }

    typealias Outcome = Result<Product, ProxyFailure>

    private var resource: Resource { text.resource }
    private var object: StoredObject { text.object }
    private var facts: ObjectFacts { text.facts }

    /// Makes the text in its current form, or takes it from memory; blocks on the disk, and merges
    /// the window of a live list that is watched with time shift.
    func make() -> Outcome {
        var key = key
        key.form = core.form(of: text, now: now)
        if let known = facts.prepared(&key, names: core.store.longURLVersion, own: host) {
            return .success(Product(playlist: known))
        }
        return make(key)
    }

    /// Makes the text for a key that is not in memory; blocks for the page cache only, since the
    /// object was just written or is read often.
    func make(_ key: ObjectFacts.RewriteKey) -> Outcome {
        // Without its window, each name of an ended recording would mean the first resource that it
        // stood for.
        if core.timeShiftThread.isOver(resource.session),
            core.timeShift.list(resource.url, of: resource.session).isUnread
        {
            return .failure(.windowUnread)
        }
        let body: [UInt8]
        let base: AbsoluteURL
        do {
            body = try readBody(of: object, count: Int(object.total ?? 0))
            base = try resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        } catch {
            return .failure(
                ProxyFailure(
                    .us, .internalServerError, "a stored playlist could not be read: \(error)",
                    allowsStale: true))
        }
        do throws(PlaylistError) {
            let version = core.playlistMemory.version
            let nameVersion = core.store.longURLVersion
            var reading = core.reading(of: resource)
            let known = reading
            if let list = key.list { core.live.adopt(list, as: resource.listKey) }
            try core.names.noteNames(in: (body, base), of: resource, object, options: reading)
            reading.assumesMap = reading.assumesMap || core.live.hasMap(resource.listKey)
            var text = transformed(body, to: key.form)
            if key.form != .origin { reading.limits = .own }
            var made: Product
            if resource.role == .json {
                made = Product(playlist: try rewriteJSON(text, base: base))
            } else {
                text = try resource.session.limit.applied(to: text, base: base, reading)
                let channels = ChannelHeaders(text)
                made = try rewrite(
                    channels?.text ?? text, base: base, to: key, reading, .served(channels))
            }
            made.playlist.names = nameVersion
            facts.keep(made.playlist, for: key, within: core.rewritten)
            // A parent that was read meanwhile may not have found this text to forget.
            if !made.isMultivariant, core.playlistMemory.version != version, isOutdated(known) {
                facts.forgetTexts(of: object)
            }
            return .success(made)
        } catch {
            return .failure(refusal(error, originStatus: facts.head.status))
        }
    }

    /// True if more is known of the parent by now.
    private func isOutdated(_ known: PlaylistReading) -> Bool {
        let later = core.reading(of: resource)
        return later.inheritedVariables != known.inheritedVariables
            || later.isSubtitles != known.isSubtitles
    }

    /// Returns the text of a playlist in its served form; URIs stay the origin's.
    private func transformed(_ text: [UInt8], to form: PlaylistForm) -> [UInt8] {
        guard form != .origin else { return text }
        if form.offline != 0, let cut = self.text.cut { return cut.bytes }
        if form.timeShift != 0, let longer = shifted { return longer }
        return text
    }

    /// The playlist with its extended window; URIs are the origin's.
    private var shifted: [UInt8]? {
        let list = core.timeShift.known(resource.url, of: resource.session)
        let ending = resource.policy == .offline ? TimeShift.Ending.ended : .live
        let bytes = list?.playlist(ending: ending) ?? []
        return bytes.isEmpty ? nil : bytes
    }

    /// - Parameters:
    ///   - prefix: the prefix of each link, with the path of the seal.
    ///   - seal: what the links carry.
    /// - Returns: the writer of links of the resource's session.
    private func linkWriter(prefix: String, _ seal: SessionSeal?) -> LinkWriter {
        LinkWriter(
            session: resource.session.id, prefix: prefix, signer: seal?.signer ?? core.signer,
            userSigner: core.keys.mountUsers.signer(of: resource.url),
            handle: core.names.handle(for:session:epoch:))
    }

    /// What the links of a playlist carry of its session, and of the playlist itself.
    private func seal(of body: [UInt8], _ base: AbsoluteURL, _ known: PlaylistReading)
        -> SessionSeal?
    {
        let seal = resource.session.seal
        guard core.sessions.sealer != nil, Self.mayDefine(body),
            let list = try? Playlist(body, base: base, known), list.multivariant != nil
        else { return seal }
        return core.sessions.seal(of: resource.session, defining: list.definedVariables)
    }

    private static let definition = Array("#EXT-X-DEFINE:".utf8)

    /// True if a text may define variables.
    private static func mayDefine(_ body: [UInt8]) -> Bool {
        body.split(separator: 0x0A).contains { $0.starts(with: definition) }
    }

    /// Returns the failure for a playlist that cannot be passed on.
    private func refusal(_ error: PlaylistError, originStatus: HTTPStatus) -> ProxyFailure {
        // With a seal, each link carries the headers that the player gave.
        let linksCarrySession = resource.session.seal != nil
        var failure = ProxyFailure(
            .origin, .badGateway, "\(resource.url.redacted): \(error.description)",
            originStatus: originStatus, allowsStale: true)
        if case .missingQueryParameter(_, let name) = error,
            SessionTable.starts(resource.session, at: resource.url)
        {
            failure = ProxyFailure(
                .client, .badRequest,
                "\(resource.url.redacted) is a playlist that takes a variable from the query "
                    + "parameter '\(name)': open it with that parameter in its URL")
        } else if case .linksTooLong(let line, let limit) = error, linksCarrySession {
            failure = ProxyFailure(
                .client, .badRequest,
                "\(resource.url.redacted): with the session in each link, line \(line) of the "
                    + "playlist would end behind the limit of \(limit) bytes: open it with fewer or "
                    + "shorter headers")
        }
        failure.dependsOnReader = error.dependsOnReader(linksCarrySession: linksCarrySession)
        return failure
    }

    /// What a playlist is rewritten from.
    private enum Source {
        /// The text in its served form, with the headers that it sets for channels.
        case served(ChannelHeaders?)
        /// That text without the segments whose URIs are withheld from players; from the number
        /// `movedFrom` on, segments have other numbers than in the list.
        case cut(movedFrom: Int?)

        var channels: ChannelHeaders? {
            if case .served(let channels) = self { channels } else { nil }
        }

        var isCut: Bool {
            if case .cut = self { true } else { false }
        }
    }

    private func rewrite(
        _ body: [UInt8], base: AbsoluteURL, to key: ObjectFacts.RewriteKey,
        _ known: PlaylistReading, _ source: Source
    ) throws(PlaylistError) -> Product {
        let seal = seal(of: body, base, known)
        let links = linkChoice(to: key, seal, source)
        var state = LinkChoice.State(
            channelLinks: source.channels.map {
                ChannelLinks($0, of: resource, base: base, prefix: prefix, core)
            },
            head: KeptHead(core.settings, count: core.aheadServices.keepHead(of: base), of: body),
            early: EarlyOrigins(core.settings, list: base),
            reported: ReportedLists(in: resource, core.playlistMemory),
            // Other forms than the origin's have other segments.
            sketch: wantsSketch && key.form == .origin ? CompactMediaList.Sketch() : nil)
        var options = PlaylistRewriter.Options(known)
        // Links contain no quotes and no control bytes: their prefix is a checked host and path.
        options.trustsMap = true
        // The links of one file differ by place, or before and behind the kept head.
        options.writesOffsets = links.names != nil || state.head != nil
        // Passed as a closure literal, so that accesses to the captured variable are not checked
        // for overlap a thousand times.
        let made = try PlaylistRewriter.rewrite(
            body, base: base, options: options,
            documents: { document throws(PlaylistError) in
                let writer = linkWriter(prefix: host + (seal?.path ?? ""), seal)
                return try rewritten(document, base: base, writer, absoluteLinks: writer)
            }
        ) { (reference, output) -> Bool in
            links.write(reference, to: &output, &state)
        }
        core.unusableReports.report(made.unusable, in: resource, to: core.log)
        if !source.isCut, !made.unusable.segmentLines.isEmpty,
            made.summary.kind == .media, made.summary.hasEndList
        {
            var known = known
            known.keepsLines = true
            let shorter = OfflinePlaylist.cut(
                try Playlist(body, base: base, known), missing: Set(made.unusable.segmentLines))
            // The line numbers of the shorter list differ.
            let moved = [movedFrom(in: source, key.form), shorter.movedFrom].compactMap { $0 }
            return try rewrite(
                shorter.bytes, base: base, to: key, known, .cut(movedFrom: moved.min()))
        }
        core.counters.add(.playlistsRewritten)
        remember(made, hasMap: state.hasMap)
        let playlist = PreparedPlaylist(
            bytes: made.bytes, facts: core.names.facts(made.summary, of: resource, facts),
            form: key.form, host: state.absoluteLinks == nil && !made.hasDocuments ? nil : host)
        return Product(
            playlist: playlist,
            sketched: state.sketch.map { (object.generation, SketchedList(made.summary, $0)) },
            origins: resource.policy == .offline ? [] : state.early.origins,
            isMultivariant: made.summary.kind == .multivariant)
    }

    /// Returns the choice of the links in a playlist.
    private func linkChoice(
        to key: ObjectFacts.RewriteKey, _ seal: SessionSeal?, _ source: Source
    ) -> LinkChoice {
        // The window that recorded the epochs of the list's names, if it is not the origin's last.
        let isShifted = key.form.timeShift != 0 || core.timeShiftThread.isOver(resource.session)
        let shift =
            isShifted ? core.timeShift.list(resource.url, of: resource.session).shift : nil
        return LinkChoice(
            // Links that carry the playlist's variables too are written in full.
            writer: linkWriter(
                prefix: seal?.text == resource.session.seal?.text
                    ? key.prefix : prefix + (seal?.path ?? ""), seal),
            host: host, seal: seal, addresses: core.addresses,
            epochs: core.live.epochs(in: resource.listKey), shift: shift,
            names: core.live.names(
                in: resource.listKey, named: asked,
                for: resource.isKept(for: resource.session) ? resource.session.id : nil,
                isShifted: shift != nil, isCut: source.isCut || key.form.offline != 0,
                movedFrom: movedFrom(in: source, key.form)),
            cookies: key.cookies.map { Array("\(RewrittenLink.cookieArgument)=\($0)".utf8) })
    }

    /// Returns the number from which on segments have other numbers than in the list; nil if there
    /// is none.
    private func movedFrom(in source: Source, _ form: PlaylistForm) -> Int? {
        switch source {
        case .served: form.offline != 0 ? text.cut?.movedFrom : nil
        case .cut(let movedFrom): movedFrom
        }
    }

    /// Keeps what a rewritten playlist tells of its session and of the playlists that it names.
    private func remember(_ made: RewrittenPlaylist, hasMap: Bool) {
        if resource.mayStore, resource.live.directives == nil { core.rememberPlayed(resource) }
        if made.summary.kind == .media, !made.summary.isChannelList {
            let slides = made.summary.isLive && made.summary.playlistType != .event
            core.playlistMemory.remember(isLive: slides, of: resource.session.id)
            if made.summary.isLive { core.noteLive(resource) }
        }
        if made.summary.kind == .multivariant {
            let session = resource.session
            let areNews = core.playlistMemory.remember(
                made.definedVariables, definedIn: resource.url, of: session.id,
                naming: made.children)
            let subtitles = core.playlistMemory.rememberSubtitles(
                made.subtitleLists, of: session.id)
            if areNews { core.forgetTexts(of: made.children, in: session) }
            core.forgetTexts(of: subtitles, in: session)
            core.noteChildren(made.children, of: resource)
        } else if hasMap, !made.summary.isSkipDelta {
            core.playlistMemory.rememberMap(
                PlaylistMemory.Key(list: resource.url, session: resource.session.id))
        }
    }

    /// Returns the text with each URI replaced by a link to this daemon.
    ///
    /// URIs of pathway clones, assets and schedules are written with scheme and host, since players
    /// do not resolve them (8216bis, 7.1 and appendix D). All others are written as in playlists.
    private func rewriteJSON(
        _ body: [UInt8], base: AbsoluteURL
    ) throws(PlaylistError) -> PreparedPlaylist {
        let seal = resource.session.seal
        let path = seal?.path ?? ""
        let links = linkWriter(prefix: prefix + path, seal)
        let absoluteLinks = linkWriter(prefix: host + path, seal)
        let made = try rewritten(body, base: base, links, absoluteLinks: absoluteLinks)
        core.unusableReports.report(made.unusable, in: resource, to: core.log)
        return PreparedPlaylist(
            bytes: made.bytes, facts: PlaylistFacts(isLive: false), form: .origin)
    }

    /// Returns a JSON document with links to this daemon; those that players do not resolve are
    /// written with `absoluteLinks`.
    private func rewritten(
        _ document: [UInt8], base: AbsoluteURL, _ links: LinkWriter, absoluteLinks: LinkWriter
    ) throws(PlaylistError) -> RewrittenJSON {
        try JSONRewriter.rewrite(
            document, base: base,
            host: { host in
                guard let root = PathwayMove.root(of: host, base: base) else {
                    return (PathwayMove.plainParameter, [0x31])
                }
                return (PathwayMove.hostParameter, links.handleText(of: root, for: .pathwayHost))
            },
            map: { reference, output in
                // Links to this daemon stay unchanged: a second handle around one would loop.
                if core.addresses.contains(reference.url) { return false }
                let isAbsolute = reference.tag == .streamInf || reference.tag == .dateRange
                let writer = isAbsolute ? absoluteLinks : links
                writer.append(reference, to: &output)
                return true
            })
    }
}

extension ProxyCore {
    /// Returns the options for reading a playlist that its text does not contain.
    func reading(of resource: Resource) -> PlaylistReading {
        let inherited = playlistMemory.knownVariables(
            of: resource.session.id, in: resource.url)
        var reading = PlaylistReading(
            limits: resource.session.limits(ofOrigins: settings.playlistLimits),
            variables: inherited ?? [:])
        reading.knowsMultivariant = inherited != nil
        let list = PlaylistMemory.Key(list: resource.url, session: resource.session.id)
        reading.assumesMap = playlistMemory.hasMap(list)
        reading.isSubtitles = playlistMemory.isSubtitles(list)
        if resource.live.directives?.skip != nil {
            reading.rangesBefore = live.ranges(in: resource.listKey)
        }
        return reading
    }
}
