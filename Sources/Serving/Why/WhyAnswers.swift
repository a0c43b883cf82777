// Answers `/api/why`, `/api/inspect` and `/api/keys`: the daemon's pages and the commands that open a folder while no
// daemon runs ask the same code.
package import CachePolicy
package import HLS
package import HTTP
package import Library
package import Model
import Playlists
package import Posix
package import Routing
package import Store
import TimeShifting
package import URISyntax

/// What an explanation is made from.
package struct WhyContext: Sendable {
    package let store: ObjectStore
    package let keys: KeyTable
    package let sessions: SessionTable
    /// True when others than the user of this machine can reach the daemon.
    package var isShared = false
    /// The kind of cache that mounts have.
    package var mountKind: CacheKind = .gateway
    package var limits = PlaylistLimits.standard
    /// Reads URLs of ours.
    package var router: @Sendable () -> Router = { Router(mounts: []) }
    /// Whether a URL leads to the daemon.
    package var isOwn: @Sendable (AbsoluteURL) -> Bool = { _ in false }
    /// True where `isOwn` cannot be sure, so that a URL which is none of ours may be an origin's.
    package var guessesOwn = false
    /// What is known of an origin that does not answer; nil where it does, or nobody has asked.
    var outage: @Sendable (Origin) -> OriginHealth.Mark? = { _ in nil }
    /// Whether any origin is down.
    var hasDown: @Sendable () -> Bool = { false }
    /// What a stored playlist is without the network; nil where no daemon runs.
    ///
    /// It and `lacking` are called on the thread that makes such forms for players.
    var offlineForm: @Sendable (Resource, StoredObject) -> OfflineForm? = { _, _ in nil }
    /// Where what a stored playlist lacks would have to come from; nil where no daemon runs.
    var lacking: @Sendable (Resource, StoredObject) -> [AbsoluteURL]? = { _, _ in nil }
    /// Epochs of names in live lists; nil where no daemon runs.
    var live: LiveMemory?
    /// The longer window that a session's list is answered with; nil where there is none.
    var window: @Sendable (Resource) -> JSONValue? = { _ in nil }
    /// Variables of a session's multivariant playlist.
    package var variables: @Sendable (SessionID) -> [String: String] = { _ in [:] }

    /// Whether a session plays a live stream.
    var isLive: @Sendable (SessionID) -> Bool = { _ in false }
    /// Whether another URL has replaced a dead one.
    var hasSuccessor: @Sendable (Resource) -> Bool = { _ in false }
    /// Bytes that a reader waits for rather than ask for them by itself.
    var joinDistance: Int64 = 0

    package init(store: ObjectStore, keys: KeyTable, sessions: SessionTable) {
        self.store = store
        self.keys = keys
        self.sessions = sessions
    }

    /// The origin's URL that a handle leads to; nil for a short form that is not known any more.
    func url(of handle: Handle) -> AbsoluteURL? {
        switch handle.target {
        case .url(let url): url
        case .name(let name): store.longURL(id: name).flatMap { try? AbsoluteURL($0) }
        case .list: nil
        }
    }
}

extension ProxyCore {
    private func question(about object: StoredObject, _ resource: Resource)
        -> OfflineWorker.Question
    {
        OfflineWorker.Question(
            resource: resource, object: object,
            variables: playlistMemory.variables(of: resource.session.id))
    }

    /// What explanations of this daemon are made from.
    var whyContext: WhyContext {
        var context = WhyContext(store: store, keys: keys, sessions: sessions)
        context.isShared = isShared
        context.mountKind = settings.mountKind
        context.limits = settings.playlistLimits
        context.router = { [links] in links.router }
        context.isOwn = { [self] in addresses.contains($0) }
        context.outage = { [self] in health.mark(of: $0) }
        context.live = live
        context.hasDown = { [self] in health.hasDown }
        context.offlineForm = { [self] in offline.form(question(about: $1, $0)) }
        context.lacking = { [self] in offline.lacking(question(about: $1, $0)) }
        context.window = { [self] in timeShift.report(on: $0) }
        context.variables = { [self] in playlistMemory.variables(of: $0) }
        context.isLive = { [self] in playlistMemory.isLive($0) }
        context.hasSuccessor = { [self] in successor(of: $0) != nil }
        context.joinDistance = settings.joinDistance
        return context
    }
}

/// Answers requests about keys and decisions; blocks for as long as a lookup in the store does.
package struct WhyAnswers: Sendable {
    let context: WhyContext

    package init(_ context: WhyContext) {
        self.context = context
    }

    /// Whether a path is one of these.
    package static func answers(_ path: String) -> Bool {
        ["/api/why", "/api/inspect", "/api/keys", "/api/keys/forget"].contains(path)
    }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - method: GET or POST.
    ///   - target: path and query as in a request line.
    ///   - now: the time that ages are told for.
    /// - Returns: JSON, or what is wrong with the request.
    package func answer(_ method: HTTPMethod, _ target: String, now: WallTime)
        -> AdministrationAnswer
    {
        let request = RequestHead(method: method, target: target)
        let given = { (name: String) in
            request.queryItems.first { $0.rawName == name }?.value()
        }
        switch (request.path, method) {
        case ("/api/why", .get), ("/api/why", .head): return explain(given("url"), now)
        case ("/api/inspect", .get), ("/api/inspect", .head): return inspect(given("url"))
        case ("/api/keys", .get), ("/api/keys", .head): return .value(.ok, context.keys.report)
        case ("/api/keys/forget", .post): return forget(given("origin"))
        case ("/api/keys/forget", _):
            return .failure(.methodNotAllowed, "this is changed with POST")
        default: return .failure(.methodNotAllowed, "this is read with GET")
        }
    }

    private func explain(_ text: String?, _ now: WallTime) -> AdministrationAnswer {
        guard let text else {
            return .failure(
                .badRequest, "the argument url is missing: /api/why?url=<percent-encoded URL>")
        }
        guard let subject = WhySubject(text, context) else { return Self.unknownURL }
        return .value(.ok, WhyReport(subject, context, now: now).json)
    }

    static let unknownURL = AdministrationAnswer.failure(
        .badRequest, "the argument url is no URL of an origin or of this daemon")

    private func forget(_ text: String?) -> AdministrationAnswer {
        guard let text, let origin = try? AbsoluteURL(text).origin else {
            return .failure(
                .badRequest,
                "the argument origin is missing: /api/keys/forget?origin=<scheme://host[:port]>")
        }
        context.keys.forget(origin.description)
        return .value(.ok, .object([.init("forgotten", .truth(true))]))
    }
}
