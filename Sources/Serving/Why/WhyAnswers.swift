// Answers `/api/why`, `/api/inspect` and `/api/keys`, for the daemon's pages and for commands that
// open a folder while no daemon runs.
package import CachePolicy
package import HTTP
package import Library
package import Model
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
    /// Routes the daemon's own URLs.
    package var router: @Sendable () -> Router = { Router(mounts: []) }
    /// True if a URL leads to the daemon.
    package var isOwn: @Sendable (AbsoluteURL) -> Bool = { _ in false }
    /// True if `isOwn` is only a guess, so that a URL which does not resolve as the daemon's own
    /// may be an origin's.
    package var guessesOwn = false
    /// Why nothing may be fetched from an origin; nil if it may.
    package var refusal: @Sendable (Origin) -> UpstreamError? = { _ in nil }
    /// The daemon that is asked; nil if none runs.
    var daemon: ProxyCore?

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

    /// Epochs of names in live lists; nil if no daemon runs.
    var live: LiveMemory? { daemon?.live }

    /// Returns the extended window of a session's list; nil if there is none.
    func window(_ resource: Resource) -> JSONValue? { daemon?.timeShift.report(on: resource) }

    /// Returns what the second level is to a resource; nil without one.
    func shared(_ resource: Resource) -> JSONValue? { daemon?.sharedReport(on: resource) }

    /// Returns the variables of a session's multivariant playlist.
    func variables(_ session: SessionID) -> [String: String] {
        daemon?.playlistMemory.variables(of: session) ?? [:]
    }

    /// True if a key is one of a live stream.
    func isLive(_ key: Resource) -> Bool { daemon?.isOfLiveStream(key) ?? false }
}

extension ProxyCore {
    /// What `why` tells of the second level.
    fileprivate func sharedReport(on resource: Resource) -> JSONValue? {
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
        context.daemon = self
        context.isShared = isShared
        context.mountKind = settings.mountKind
        context.router = { [links] in links.router }
        context.isOwn = { [links] in links.isOwn($0) }
        context.refusal = { [onlyOrigins] in onlyOrigins.current.refusal(of: $0) }
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
        case ("/api/why", .get), ("/api/why", .head), ("/api/inspect", .get),
            ("/api/inspect", .head):
            guard let text = given("url") else {
                return .failure(
                    .badRequest,
                    "the argument url is missing: \(request.path)?url=<percent-encoded URL>")
            }
            guard let subject = WhySubject(text, context) else {
                return .failure(
                    .badRequest, "the argument url is no URL of an origin or of this daemon")
            }
            return request.path == "/api/inspect"
                ? inspect(subject) : .value(.ok, WhyReport(subject, context, now: now).json)
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
