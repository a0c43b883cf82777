// The making of one rewritten text: everything that it depends on, read from the exchange, so that any
// thread can make it.
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

/// A stored playlist or JSON text that is to be rewritten for one session.
struct TextPreparation: Sendable {
    let core: ProxyCore
    let resource: Resource
    /// The list that the player asked for, which the paths of links name.
    let asked: ObjectKey
    let object: StoredObject
    let facts: ObjectFacts
    /// What the text is kept under, without its form.
    let key: ObjectFacts.RewriteKey
    /// What stands before each written URL: a base path, or scheme, host and base path.
    let prefix: String
    /// Scheme, host and base path, for the URLs that must be absolute.
    let host: String
    /// The offline form, if it is the one to serve.
    let cut: OfflineText?
    /// Whether look-ahead wants to know what the list names.
    let draws: Bool
    let now: Monotonic

    /// What was made.
    struct Product: Sendable {
        let playlist: PreparedPlaylist
        /// What look-ahead learns of it, with the generation of the object; nil where the text was
        /// in memory, and where nobody asked.
        var drawn: (generation: UInt64, list: DrawnList)?
        /// Where a player will probably go next: origins to connect to early.
        var origins: [Origin] = []
    }

    typealias Outcome = Result<Product, ProxyFailure>

    /// The text in its form of now, from memory if it is there; blocks on the disk, and merges the
    /// window of a live list that is watched with time shift.
    func make() -> Outcome {
        var key = key
        key.form = core.form(of: object, facts, resource, cut: cut, now: now)
        if let known = facts.prepared(&key, own: host) {
            return .success(Product(playlist: known))
        }
        return make(key)
    }

    /// The text for a key, which is not in memory; blocks for the page cache only, since the object was
    /// just written or is read often.
    func make(_ key: ObjectFacts.RewriteKey) -> Outcome {
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
            var reading = core.reading(of: resource)
            if let list = key.list { core.live.adopt(list, as: resource.listKey) }
            try core.names.noteNames(in: (body, base), of: resource, object, options: reading)
            reading.assumesMap = reading.assumesMap || core.live.hasMap(resource.listKey)
            let text = transformed(body, to: key.form)
            let channels = resource.role == .json ? nil : ChannelHeaders(text)
            let made =
                resource.role == .json
                ? Product(playlist: try rewriteJSON(text, base: base))
                : try rewrite(channels?.text ?? text, base: base, to: key, reading, channels)
            facts.keep(made.playlist, for: key, within: core.rewritten)
            return .success(made)
        } catch {
            return .failure(refusal(error, originStatus: facts.head.status))
        }
    }

    /// The text of a playlist in the form that is served; URIs stay the origin's.
    private func transformed(_ text: [UInt8], to form: PlaylistForm) -> [UInt8] {
        guard form != .origin else { return text }
        if form.offline != 0, let cut { return cut.bytes }
        if form.timeShift != 0, let longer = shifted { return longer }
        return text
    }

    /// The playlist with its longer window; URIs are the origin's.
    private var shifted: [UInt8]? {
        let list = core.timeShift.known(resource.url, of: resource.session.id)
        let ending = resource.policy == .offline ? TimeShift.Ending.ended : .live
        let bytes = list?.playlist(ending: ending) ?? []
        return bytes.isEmpty ? nil : bytes
    }

    private func linkWriter(prefix: String) -> LinkWriter {
        LinkWriter(
            session: resource.session.id, prefix: prefix, signer: core.signer,
            handle: core.names.handle(for:session:epoch:))
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

    private func rewrite(
        _ body: [UInt8], base: AbsoluteURL, to key: ObjectFacts.RewriteKey,
        _ known: PlaylistReading, _ channels: ChannelHeaders?
    ) throws(PlaylistError) -> Product {
        let form = key.form
        let links = linkWriter(prefix: key.prefix)
        var channelLinks = channels.map { ChannelLinks($0, of: resource, base: base, core) }
        var absoluteLinks: LinkWriter?
        var hasMap = false
        let epochs = core.live.epochs(in: resource.listKey)
        let shift = namesOfShifted(form)
        let names = core.live.names(
            in: resource.listKey, named: asked, isShifted: shift != nil)
        var head = KeptHead(core.settings, count: core.aheadServices.keepHead(of: base), of: body)
        // Lists name one host a thousand times in a row: it is judged once.
        var judged: (url: AbsoluteURL, isOwn: Bool)?
        var early = EarlyOrigins(core.settings, list: base)
        // And one folder, which is nobody's that leads to us.
        var others: URLFolder?
        // Other forms than the origin's have other segments.
        var sketch = draws && form == .origin ? MediaPicture.Sketch() : nil
        var options = PlaylistRewriter.Options(known)
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
                    isOwn = core.addresses.contains(neighbour)
                    judged = (neighbour, isOwn)
                    if !isOwn { early.add(neighbour) }
                }
                others = isOwn ? nil : reference.place.folder
            }
            // What leads to us already is left alone: a second handle around it would loop.
            if isOwn { return false }
            if reference.hasMap { hasMap = true }
            let epoch =
                shift.map { self.epoch(of: reference, in: $0) }
                ?? (epochs.isEmpty ? .first : self.epoch(of: reference, epochs))
            if let own = channelLinks?.links(of: reference, prefix: key.prefix) {
                own.append(reference, to: &output)
                return true
            }
            switch head?.link(of: reference) ?? .kept {
            case .origins: output.append(contentsOf: reference.url.bytes)
            case .kept where reference.tag == .dateRange:
                // Players resolve nothing in date ranges (8216bis, appendix D).
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
                guard case .unkept = link else { break }
                output.append(contentsOf: place == nil ? KeptHead.suffix : KeptHead.furtherSuffix)
            }
            return true
        }
        core.unusableReports.report(made.unusable, in: resource, to: core.log)
        if !made.unusable.segmentLines.isEmpty, made.summary.hasEndList {
            var known = known
            known.keepsLines = true
            let shorter = OfflinePlaylist.cut(
                try Playlist(body, base: base, known), missing: Set(made.unusable.segmentLines))
            // The lines of the shorter list are others.
            return try rewrite(shorter, base: base, to: key, known, nil)
        }
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
        let playlist = PreparedPlaylist(
            bytes: made.bytes, facts: PlaylistFacts(made.summary), form: form,
            host: absoluteLinks == nil ? nil : host)
        return Product(
            playlist: playlist,
            drawn: sketch.map { (object.generation, DrawnList(made.summary, $0)) },
            origins: resource.policy == .offline ? [] : early.origins)
    }

    /// What the names of the served list stood for when their segments were new; nil where those
    /// of the origin's last window tell.
    private func namesOfShifted(_ form: PlaylistForm) -> TimeShift? {
        guard form.timeShift != 0 || core.keeper.isOver(resource.session) else { return nil }
        return core.timeShift.list(resource.url, of: resource.session).shift
    }

    /// The epoch of a name in a longer window.
    private func epoch(of reference: ResourceReference, in shift: TimeShift) -> Epoch {
        guard let marks = shift.marks(number: reference.mediaSequence) else { return .first }
        return switch reference.role {
        case .initialization: Epoch(number: marks.map)
        case .key: Epoch(number: marks.key)
        case .segment, .subtitle, .media, .image: Epoch(number: marks.segment)
        case .part, .playlist, .json: .first
        }
    }

    /// The epoch that a name of the served list is in.
    ///
    /// - Parameters:
    ///   - reference: the name, in the served form.
    ///   - epochs: those of the origin's last window, where they are not the first.
    /// - Returns: the epoch to write into the link.
    private func epoch(of reference: ResourceReference, _ epochs: [AbsoluteURL: Epoch]) -> Epoch {
        reference.role == .playlist ? .first : epochs[reference.url] ?? .first
    }

    /// The text with each URI as a link of this daemon.
    ///
    /// What a pathway clone names outright, assets and schedules are written with scheme and host:
    /// players do not resolve them (8216bis, 7.1 and appendix D). Everything else as in playlists.
    private func rewriteJSON(
        _ body: [UInt8], base: AbsoluteURL
    ) throws(PlaylistError) -> PreparedPlaylist {
        let links = linkWriter(prefix: prefix)
        let absoluteLinks = linkWriter(prefix: host)
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
                if core.addresses.contains(reference.url) { return false }
                let isAbsolute = reference.tag == .streamInf || reference.tag == .dateRange
                let writer = isAbsolute ? absoluteLinks : links
                writer.append(reference, to: &output)
                return true
            })
        core.unusableReports.report(made.unusable, in: resource, to: core.log)
        return PreparedPlaylist(
            bytes: made.bytes, facts: PlaylistFacts(isLive: false), form: .origin)
    }

    private var memoryKey: PlaylistMemory.Key {
        PlaylistMemory.Key(list: resource.url, session: resource.session.id)
    }
}

extension ProxyCore {
    /// What is known of a playlist beside its text.
    func reading(of resource: Resource) -> PlaylistReading {
        let inherited = playlistMemory.knownVariables(of: resource.session.id)
        var reading = PlaylistReading(
            limits: settings.playlistLimits, variables: inherited ?? [:])
        reading.knowsMultivariant = inherited != nil
        reading.assumesMap = playlistMemory.hasMap(
            PlaylistMemory.Key(list: resource.url, session: resource.session.id))
        return reading
    }
}
