import Ahead
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Model
import Origin
import Playlists
import Reactor
import Store
import TimeShifting
import URISyntax

/// Playlists and HLS JSON texts: read from the store, rewritten for the session, served from
/// memory.
extension OriginExchange {
    private var rewriteKey: ObjectFacts.RewriteKey {
        // JSON texts always contain absolute URLs.
        let prefix =
            resource.role == .json
            ? links.absolute : links.own(of: resource.session, in: request.target)
        // Link paths name the list that was requested, wherever it was found.
        let list = asked.listKey
        return ObjectFacts.RewriteKey(
            session: resource.session.id, prefix: prefix,
            list: list == resource.listKey ? nil : list,
            sealKey: resource.session.seal?.keyID ?? core.sessions.sealer?.firstID ?? 0,
            cookies: core.cookies?.text(of: resource.session.id))
    }

    /// True if a playlist was fetched by another session and must not be shared.
    ///
    /// Origins mark playlists made for one viewer, for example with advertisements, with `private`
    /// or `no-store`; the segments that they name are shared. A playlist that this session has
    /// already received is its own.
    func belongsToAnotherViewer(_ facts: ObjectFacts) -> Bool {
        facts.head.isPlaylist && facts.isPerViewer
            && !resource.isKept(for: resource.session) && facts.prepared(rewriteKey) == nil
    }

    // MARK: Preparation

    /// Passes the rewritten form of a stored text to `then`: immediately if it is in memory or
    /// short, otherwise once a thread for long texts has made it, if the client is still connected.
    func prepare(
        _ object: StoredObject, _ facts: ObjectFacts,
        then: @escaping (Result<PreparedPlaylist, ProxyFailure>) -> Void
    ) {
        let isLong = (object.total ?? 0) >= TextWorker.longText
        let isShiftLong = core.isShiftLong(resource)
        guard !isShiftLong, !isLong || knowsForm(of: object) else {
            return prepareElsewhere(object, facts, then)
        }
        var key = rewriteKey
        key.form = resource.role == .json ? .origin : form(of: object, facts)
        if let known = facts.prepared(&key, own: links.absolute) {
            return then(.success(known))
        }
        guard !isLong else { return prepareElsewhere(object, facts, then) }
        take(preparation(of: object, facts).make(key), then)
    }

    /// True if the form of a text is known without reading the text.
    private func knowsForm(of object: StoredObject) -> Bool {
        guard resource.session.isShifted, resource.kind == nil else { return true }
        let list = core.timeShift.known(resource.url, of: resource.session.id)
        return list?.hasMerged(object.generation) ?? false
    }

    private func preparation(of object: StoredObject, _ facts: ObjectFacts) -> TextPreparation {
        TextPreparation(
            core: core, resource: resource, asked: asked.listKey, object: object, facts: facts,
            key: rewriteKey, prefix: links.written, host: links.absolute, cut: cut,
            draws: core.lookahead.draws(resource, generation: object.generation, exchange),
            now: exchange.loop.now)
    }

    private func prepareElsewhere(
        _ object: StoredObject, _ facts: ObjectFacts,
        _ then: @escaping (Result<PreparedPlaylist, ProxyFailure>) -> Void
    ) {
        // One request may need the text several times: for a decision, then to be served.
        if let prepared, prepared.generation == object.generation, prepared.cut === cut,
            prepared.resource === resource
        {
            return then(.success(prepared.playlist))
        }
        let preparation = preparation(of: object, facts)
        let key = TextWorker.Key.Product.rewritten(
            preparation.key, host: preparation.host, resource: resource.key,
            cut: preparation.cut?.number ?? 0)
        let (resource, cut) = (resource, cut)
        makeElsewhere(key, of: object, { preparation.make() }) { this, outcome in
            if case .success(let made) = outcome {
                this.prepared = Prepared(
                    generation: object.generation, resource: resource, cut: cut,
                    playlist: made.playlist)
            }
            this.take(outcome, then)
        }
    }

    private func take(
        _ outcome: TextPreparation.Outcome,
        _ then: (Result<PreparedPlaylist, ProxyFailure>) -> Void
    ) {
        switch outcome {
        case .success(let made):
            if let list = made.sketched { sketched = list }
            then(.success(made.playlist))
            if !made.origins.isEmpty { core.flights.connectEarly(to: made.origins) }
        case .failure(let failure): then(.failure(failure))
        }
    }

    /// Has a thread for long texts process a stored text; calls `then` on this loop, if the client
    /// is still connected.
    ///
    /// - Parameters:
    ///   - product: the kind of result.
    ///   - object: the text; nil if it must be searched for.
    ///   - make: makes the result.
    ///   - orElse: called instead if too many texts wait; nil fails the request then.
    ///   - then: receives the result.
    func makeElsewhere<Value: Sendable>(
        _ product: TextWorker.Key.Product, of object: StoredObject?,
        _ make: @escaping @Sendable () -> Value, orElse: (() -> Void)? = nil,
        _ then: @escaping (OriginExchange, Value) -> Void
    ) {
        let key = TextWorker.Key(generation: object?.generation ?? 0, product: product)
        let bound = LoopBound((self, then), to: exchange.loop)
        let request = core.texts.make(key, bytes: Int(object?.total ?? 0), make) { value in
            bound.enqueue { pair, _ in
                pair.0.exchange.onCancel = nil
                if pair.0.exchange.isAlive { pair.1(pair.0, value) }
            }
        }
        guard let request else { return orElse?() ?? fail(.textsWait) }
        exchange.onCancel = { [core] in core.texts.cancel(request) }
    }

    // MARK: Sending

    /// Sends a rewritten playlist or JSON text: always whole, whatever range was requested.
    func servePlaylist(
        _ playlist: PreparedPlaylist, of object: StoredObject, _ facts: ObjectFacts, _ how: Serving
    ) {
        guard playlist.bytes.count >= Gzip.worthwhile, ContentCoding.acceptsGzip(request.fields)
        else { return send(playlist, coded: nil, facts, how) }
        var key = rewriteKey
        key.form = playlist.form
        key.host = playlist.host
        key.isCompressed = true
        if let known = facts.prepared(key) { return send(playlist, coded: known, facts, how) }
        let budget = core.rewritten
        let compress: @Sendable () -> PreparedPlaylist? = { [key] in
            guard let made = playlist.compressed else { return nil }
            facts.keep(made, for: key, within: budget)
            return made
        }
        guard playlist.bytes.count >= TextWorker.longText else {
            return send(playlist, coded: compress(), facts, how)
        }
        makeElsewhere(
            .compressed(key), of: object, compress,
            orElse: { self.send(playlist, coded: nil, facts, how) },
            { this, coded in this.send(playlist, coded: coded, facts, how) })
    }

    /// Sends a text, in its gzip form if there is one.
    private func send(
        _ playlist: PreparedPlaylist, coded: PreparedPlaylist?, _ facts: ObjectFacts,
        _ how: Serving
    ) {
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        let bytes = (coded ?? playlist).bytes
        let isCoded = coded != nil
        keepForRepetition(facts, how, playlist: playlist, content: .text(bytes)) { now, how in
            builder.at(now).textHead(facts, of: playlist.facts, isCompressed: isCoded, how)
        }
        var head = builder.textHead(facts, of: playlist.facts, isCompressed: isCoded, how)
        noteCompleteness(in: &head.fields)
        deliver(bytes, head, how)
    }

    /// Sends a text.
    func deliver(_ text: [UInt8], _ head: ResponseHead, _ how: Serving) {
        countBytes(how)
        exchange.respond(head, body: .bytes(text))
    }
}

extension PreparedPlaylist {
    /// The gzip form; nil if zlib has no memory.
    fileprivate var compressed: PreparedPlaylist? {
        Gzip.compress(bytes).map {
            PreparedPlaylist(bytes: $0, facts: facts, form: form, host: host)
        }
    }
}
