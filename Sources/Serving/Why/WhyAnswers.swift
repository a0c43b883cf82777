// Answers `/api/why`, `/api/inspect` and `/api/keys`, for the daemon's pages and for commands that
// open a folder while no daemon runs.
package import CachePolicy
package import HLS
package import HTTP
package import Library
package import Model
import Origin
import Playlists
package import Posix
package import Routing
import SharedStore
package import Store
import TimeShifting
package import URISyntax
package import Upstream

/// The input of an explanation.
package struct WhyContext: Sendable {
    package let store: ObjectStore
    package let keys: KeyTable
    package let sessions: SessionTable
    /// True if others than the user of this machine can reach the daemon.
    package var isShared = false
    /// The kind of cache that mounts have.
    package var mountKind: CacheKind = .gateway
    package var limits = PlaylistLimits.standard
    /// Routes the daemon's own URLs.
    package var router: @Sendable () -> Router = { Router(mounts: []) }
    /// The access token, which is no part of an origin's URL.
    package var token: String?
    /// True if a URL leads to the daemon.
    package var isOwn: @Sendable (AbsoluteURL) -> Bool = { _ in false }
    /// True if `isOwn` is only a guess, so that a URL which does not resolve as the daemon's own
    /// may be an origin's.
    package var guessesOwn = false
    /// The mark of an origin that does not answer; nil if it does, or was not contacted.
    var outage: @Sendable (Origin) -> OriginHealth.Mark? = { _ in nil }
    /// The state of a resource's origin as a request sees it: up if a parent is asked in its place.
    var originState: @Sendable (Resource) -> OriginHealth.State = { _ in .up }
    /// True if the return of a resource's origin is waited for.
    var isAwaited: @Sendable (Resource) -> Bool = { _ in false }
    /// What remains of the pause that an origin asked for before a resource is requested again; nil
    /// if it may be.
    var pause: @Sendable (Resource) -> RefusalMemory.Pause? = { _ in nil }
    /// Why nothing may be fetched from an origin; nil if it may.
    package var refusal: @Sendable (Origin) -> UpstreamError? = { _ in nil }
    /// The longest pause that a request for what is not stored waits for.
    var patience = Interval.zero
    /// True if a playlist is reduced to what is stored, since an origin is down.
    var mustReduce: @Sendable (Resource) -> Bool = { _ in false }
    /// The offline form of a stored playlist; nil if no daemon runs.
    ///
    /// This and `lacking` are called on the thread that makes offline forms for players.
    var offlineForm: @Sendable (Resource, StoredObject) -> OfflineForm? = { _, _ in nil }
    /// The origins' URLs of what a stored playlist lacks; nil if no daemon runs.
    var lacking: @Sendable (Resource, StoredObject) -> [AbsoluteURL]? = { _, _ in nil }
    /// Epochs of names in live lists; nil if no daemon runs.
    var live: LiveMemory?
    /// The extended window of a session's list; nil if there is none.
    var window: @Sendable (Resource) -> JSONValue? = { _ in nil }
    /// The body without a length that is arriving for a resource and may have no end; nil if none is.
    var endless: @Sendable (Resource) -> EndlessBody? = { _ in nil }
    /// Variables of a session's multivariant playlist.
    package var variables: @Sendable (SessionID) -> [String: String] = { _ in [:] }

    /// What the second level is to a resource; nil without one.
    var shared: @Sendable (Resource) -> JSONValue? = { _ in nil }
    /// True if a key is one of a live stream.
    var isLive: @Sendable (Resource) -> Bool = { _ in false }
    /// True if another URL has replaced an expired one.
    var hasSuccessor: @Sendable (Resource) -> Bool = { _ in false }
    /// True if a playlist is stored at the URL that replaced its own.
    var isSuccessorStored: @Sendable (Resource) -> Bool = { _ in false }
    /// The distance to a flight, in bytes, up to which a reader waits for it instead of starting
    /// its own.
    var joinDistance: Int64 = 0

    package init(store: ObjectStore, keys: KeyTable, sessions: SessionTable) {
        self.store = store
        self.keys = keys
        self.sessions = sessions
    }

    /// Returns the origin's URL of a handle; nil for a short form that is unknown (any more), or
    /// that the index cannot be read for.
    func url(of handle: Handle) -> AbsoluteURL? {
        try? ResourceNames.url(of: handle.target, in: store)
    }
}

extension ProxyCore {
    private func question(about object: StoredObject, _ resource: Resource)
        -> OfflineWorker.Question
    {
        OfflineWorker.Question(
            resource: resource, object: object,
            variables: playlistMemory.variables(of: resource.session.id, in: resource.url))
    }

    /// What `why` tells of the second level.
    private func sharedReport(on resource: Resource) -> JSONValue? {
        guard let sharedStore = origins.sharedStore, let settings = settings.sharedStore else {
            return nil
        }
        let isAsked =
            resource.mayBeShared(withKeys: settings.sharesKeys)
            && !resource.isOnAir(live, playlistMemory)
        return .object([
            .init("store", .text("\(sharedStore.location)")),
            .init("state", .text(sharedStore.isUp ? "up" : "left-out")),
            .init("asked", .truth(isAsked && sharedStore.isUp)),
            .init("name", isAsked ? .text(SharedNames.object(resource.key.hex)) : .null),
        ])
    }

    /// The input of explanations by this daemon.
    var whyContext: WhyContext {
        var context = WhyContext(store: store, keys: keys, sessions: sessions)
        context.isShared = isShared
        context.mountKind = settings.mountKind
        context.limits = settings.playlistLimits
        context.router = { [links] in links.router }
        context.token = settings.token
        context.isOwn = { [links] in links.isOwn($0) }
        context.outage = { [origins] in origins.health.mark(of: $0) }
        context.live = live
        context.originState = { [origins] in origins.state(of: $0) }
        context.pause = { [refusals] in refusals.pause(of: $0, now: .now()) }
        context.refusal = { [onlyOrigins] in onlyOrigins.current.refusal(of: $0) }
        context.patience = settings.patience
        context.isAwaited = { [origins] in origins.isAwaited($0, now: .now()) }
        context.mustReduce = { [origins] in origins.mustReduce($0) }
        context.shared = { [self] in sharedReport(on: $0) }
        context.offlineForm = { [self] in offline.form(question(about: $1, $0)) }
        context.lacking = { [self] in offline.lacking(question(about: $1, $0)) }
        context.endless = { [self] in endless.arriving(for: $0.key) }
        context.window = { [self] in timeShift.report(on: $0) }
        context.variables = { [self] in playlistMemory.variables(of: $0) }
        context.isLive = { [self] in isOfLiveStream($0) }
        context.hasSuccessor = { [self] in successor(of: $0) != nil }
        context.isSuccessorStored = { [self] in isStoredList($0, movedTo: successor(of: $0)) }
        context.joinDistance = settings.joinDistance
        return context
    }
}

/// Answers requests about keys and decisions; blocks for lookups in the store.
package struct WhyAnswers: Sendable {
    let context: WhyContext

    package init(_ context: WhyContext) {
        self.context = context
    }

    /// True if this type answers requests for a path.
    package static func answers(_ path: String) -> Bool {
        ["/api/why", "/api/inspect", "/api/keys", "/api/keys/forget", "/api/keys/refuse"]
            .contains(path)
    }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - method: GET or POST.
    ///   - target: path and query as in a request line.
    ///   - now: the time from which ages are computed.
    /// - Returns: JSON, or the error in the request.
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
        case ("/api/keys/refuse", .post): return refuse(given("origin"), given("name"))
        case ("/api/keys/forget", _), ("/api/keys/refuse", _):
            return .methodNotAllowed(allowed: [.post], "\(request.path) takes POST only")
        default:
            return .methodNotAllowed(
                allowed: [.get, .head], "\(request.path) is read with GET or HEAD")
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

    private func refuse(_ text: String?, _ name: String?) -> AdministrationAnswer {
        guard let text, let name, let origin = try? AbsoluteURL(text).origin else {
            return .failure(
                .badRequest,
                "an argument is missing: /api/keys/refuse?origin=<scheme://host[:port]>&name=<parameter>"
            )
        }
        guard context.keys.refuse(name, of: origin.description) else {
            return .failure(.notFound, "nothing was learned about this parameter of the origin")
        }
        return .value(.ok, .object([.init("refused", .truth(true))]))
    }

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
