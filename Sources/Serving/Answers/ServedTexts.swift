// The texts of one exchange in the form in which they are served: from memory, made on the loop, or
// made by a thread for long texts.
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

/// A stored playlist or HLS JSON text, as one request may be served it.
struct ServableText {
    let resource: Resource
    let object: StoredObject
    let facts: ObjectFacts
    /// The offline form, if it is to be served.
    let cut: OfflineText?
    /// True for a page of another site.
    let isForPage: Bool
}

/// The rewritten texts of one exchange.
///
/// Bound to its server loop.
final class ServedTexts {
    private let core: ProxyCore
    private let exchange: Exchange
    /// The list that the request names, wherever its text was found: link paths name it.
    private let asked: ObjectKey
    private let links: LinkPrefix
    /// The list as look-ahead needs it, if one was rewritten here, with the generation of its
    /// object.
    private var sketched: (generation: UInt64, list: SketchedList)?
    /// The last long text that was made here, and its inputs: one request may need it several
    /// times, for a decision and then to be served.
    private var last: (input: ServableText, playlist: PreparedPlaylist)?

    /// - Parameters:
    ///   - core: what all exchanges share.
    ///   - exchange: the request and its response.
    ///   - asked: the key of the list that the request names.
    init(_ core: ProxyCore, _ exchange: Exchange, asked: ObjectKey) {
        self.core = core
        self.exchange = exchange
        self.asked = asked
        links = LinkPrefix(
            exchange.request, isEncrypted: exchange.isEncrypted, core.settings)
    }

    private func rewriteKey(_ resource: Resource) -> ObjectFacts.RewriteKey {
        // JSON texts always contain absolute URLs.
        let prefix =
            resource.role == .json
            ? links.absolute : links.own(of: resource.session, in: exchange.request.target)
        return ObjectFacts.RewriteKey(
            session: resource.session.id, prefix: prefix,
            list: asked == resource.listKey ? nil : asked,
            sealKey: resource.session.seal?.keyID ?? core.sessions.sealer?.firstID ?? 0,
            cookies: core.cookies?.text(of: resource.session.id),
            settings: core.keys.settingsVersion,
            user: resource.url.hasStandIn ? core.keys.user(of: resource.url) : nil)
    }

    /// True if the text is in memory as this session received it.
    func isKnown(_ facts: ObjectFacts, to resource: Resource) -> Bool {
        facts.prepared(rewriteKey(resource)) != nil
    }

    /// Returns the list of an object as look-ahead needs it; nil if it was not rewritten here.
    func sketch(of object: StoredObject) -> SketchedList? {
        sketched.flatMap { $0.generation == object.generation ? $0.list : nil }
    }

    // MARK: Rewriting

    /// Passes the rewritten form of a stored text to `then`: immediately if it is in memory or
    /// short, otherwise once a thread for long texts has made it, if the client is still connected.
    func prepare(
        _ text: ServableText, then: @escaping (Result<PreparedPlaylist, ProxyFailure>) -> Void
    ) {
        let isLong = (text.object.total ?? 0) >= TextWorker.longText
        guard !core.isShiftLong(text.resource), !isLong || knowsForm(of: text) else {
            return prepareElsewhere(text, then)
        }
        var key = rewriteKey(text.resource)
        key.form =
            text.resource.role == .json ? .origin : core.form(of: text, now: exchange.loop.now)
        let names = core.store.longURLVersion
        if let known = text.facts.prepared(&key, names: names, own: links.absolute) {
            return then(.success(known))
        }
        guard !isLong else { return prepareElsewhere(text, then) }
        take(preparation(of: text).make(key), then)
    }

    /// True if the form of a text is known without reading the text.
    private func knowsForm(of text: ServableText) -> Bool {
        guard text.resource.session.isShifted, !text.resource.followsHTTP else { return true }
        let list = core.timeShift.known(text.resource.url, of: text.resource.session)
        return list?.hasMerged(text.object.generation) ?? false
    }

    private func preparation(of text: ServableText) -> TextPreparation {
        TextPreparation(
            core: core, text: text, asked: asked, key: rewriteKey(text.resource),
            prefix: links.written, host: links.absolute,
            wantsSketch: core.lookahead.wantsSketch(
                text.resource, generation: text.object.generation, exchange),
            now: exchange.loop.now)
    }

    private func prepareElsewhere(
        _ text: ServableText, _ then: @escaping (Result<PreparedPlaylist, ProxyFailure>) -> Void
    ) {
        if let last, last.input.object.generation == text.object.generation,
            last.input.cut === text.cut, last.input.resource === text.resource
        {
            return then(.success(last.playlist))
        }
        let preparation = preparation(of: text)
        let product = TextWorker.Key.Product.rewritten(
            preparation.key, host: preparation.host, resource: text.resource.key,
            cut: text.cut?.number ?? 0)
        core.texts.make(
            product, of: text.object, for: exchange, { preparation.make() },
            orElse: { then(.failure(.textsWait)) },
            { [self] outcome in
                if case .success(let made) = outcome { last = (text, made.playlist) }
                take(outcome, then)
            })
    }

    private func take(
        _ outcome: TextPreparation.Outcome,
        _ then: (Result<PreparedPlaylist, ProxyFailure>) -> Void
    ) {
        switch outcome {
        case .success(let made):
            if let list = made.sketched { sketched = list }
            // Before the list is sent: a quick player must not be earlier.
            if !made.origins.isEmpty { core.flights.connectEarly(to: made.origins) }
            then(.success(made.playlist))
        case .failure(let failure): then(.failure(failure))
        }
    }

    // MARK: Compression

    /// Passes the gzip form of a rewritten text to `then`, immediately or once a thread for long
    /// texts has made it; nil if zlib has no memory or too many texts wait.
    func compress(
        _ playlist: PreparedPlaylist, of text: ServableText,
        then: @escaping (PreparedPlaylist?) -> Void
    ) {
        var key = rewriteKey(text.resource)
        key.form = playlist.form
        key.host = playlist.host
        key.isCompressed = true
        let facts = text.facts
        if let known = facts.prepared(key, names: playlist.names) { return then(known) }
        let budget = core.rewritten
        let compress: @Sendable () -> PreparedPlaylist? = { [key] in
            guard let bytes = Gzip.compress(playlist.bytes) else { return nil }
            let made = PreparedPlaylist(
                bytes: bytes, facts: playlist.facts, form: playlist.form, host: playlist.host,
                names: playlist.names)
            facts.keep(made, for: key, within: budget)
            return made
        }
        guard playlist.bytes.count >= TextWorker.longText else { return then(compress()) }
        core.texts.make(
            .compressed(key), of: text.object, for: exchange, compress, orElse: { then(nil) }, then)
    }
}

extension TextWorker {
    /// Makes a value from a stored text for an exchange, and withdraws the request if the client
    /// leaves.
    ///
    /// - Parameters:
    ///   - product: the kind of value.
    ///   - object: the text.
    ///   - exchange: who needs it.
    ///   - make: makes the value, on a thread for long texts.
    ///   - orElse: called at once, and nothing else, if too many texts wait.
    ///   - then: receives the value on the exchange's loop, if the client is still connected.
    func make<Value: Sendable>(
        _ product: Key.Product, of object: StoredObject, for exchange: Exchange,
        _ make: @escaping @Sendable () -> Value, orElse: () -> Void,
        _ then: @escaping (Value) -> Void
    ) {
        let key = Key(generation: object.generation, product: product)
        let bound = LoopBound((exchange, then), to: exchange.loop)
        let request = self.make(key, bytes: Int(object.total ?? 0), make) { value in
            bound.enqueue { pair, _ in
                pair.0.onCancel = nil
                if pair.0.isAlive { pair.1(value) }
            }
        }
        guard let request else { return orElse() }
        exchange.onCancel = { self.cancel(request) }
    }
}
