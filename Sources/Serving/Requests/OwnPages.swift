// The daemon's own pages: figures, titles, help. JSON for tools, text for people.
package import Ahead
import Console
import HTTP
package import HTTPServer
package import Library
import Model
import Origin
import Playlists
package import Posix
import Reactor
import Routing
import Store
import TimeShifting
import URISyntax

/// What the pages show besides the state of the proxy layer.
package struct StatusSource: Sendable {
    package let version: String
    package let startedAt: Monotonic
    package let connections: @Sendable () -> Int
    package let handshakes: @Sendable () -> HandshakeFigures
    /// Answers requests that read or change the store.
    package let administration: AdministrationWorker
    /// Makes pictures of titles; nil while they are off.
    package let pictures: TitlePictures?
    /// Answers requests about downloads.
    package let downloads: DownloadService
    /// The figures of the last day.
    package let history: HistoryKeeper

    package init(
        version: String, startedAt: Monotonic, administration: AdministrationWorker,
        pictures: TitlePictures?, downloads: DownloadService, history: HistoryKeeper,
        connections: @escaping @Sendable () -> Int,
        handshakes: @escaping @Sendable () -> HandshakeFigures
    ) {
        self.pictures = pictures
        self.downloads = downloads
        self.history = history
        self.version = version
        self.startedAt = startedAt
        self.administration = administration
        self.connections = connections
        self.handshakes = handshakes
    }
}

/// Answers `/`, `/api/...` and `/metrics`, as the table of `OwnPage` says.
final class OwnPages {
    let core: ProxyCore
    let status: StatusSource

    init(core: ProxyCore, status: StatusSource) {
        self.core = core
        self.status = status
    }

    func handle(_ path: String, _ exchange: Exchange) {
        let request = exchange.request
        let page = OwnPage.find(path)
        // A method that the page does not take changes nothing, whoever sends it.
        if let methods = page?.methods, !methods.contains(request.method) {
            return refuse(exchange, method: request.method, at: path, allowed: methods)
        }
        if request.method != .options, let fault = changeFault(request) {
            return refuse(exchange, .forbidden, fault)
        }
        guard let page else { return handleUnlisted(path, exchange) }
        if request.method.isSafe, request.method != .options, path.hasPrefix("/api/"),
            page.access != .everybody, ForeignPage.isForeignReading(request, core.settings)
        {
            // The page could not read the response, but would have the daemon work for it.
            return refuse(exchange, .forbidden, "pages of other sites may not read the API")
        }
        page.answer(self, path, exchange)
    }

    /// Answers a path without a page: that of a mount without its slash, or a mistyped entry.
    private func handleUnlisted(_ path: String, _ exchange: Exchange) {
        let method = exchange.request.method
        guard core.links.router.isMountWithoutSlash(path) else {
            return refuseUnknown(path, exchange)
        }
        guard OwnPage.reading.contains(method) else {
            return refuse(exchange, method: method, at: path, allowed: OwnPage.reading)
        }
        redirectToMount(path, exchange)
    }

    /// Answers 404 with a hint.
    func refuseUnknown(_ path: String, _ exchange: Exchange) {
        refuse(exchange, .notFound, "nothing is at this path; " + advice(path, exchange))
    }

    func sendHelp(_ exchange: Exchange) {
        let here = own(exchange)
        let lines = OwnPage.helpText.split(separator: "~", omittingEmptySubsequences: false)
        answer(
            exchange, .ok, "text/plain; charset=utf-8",
            "sluice \(status.version): an HLS caching proxy\n\n" + lines.joined(separator: here))
    }

    func sendStatistics(_ exchange: Exchange) {
        withFigures(exchange) { self.answer(exchange, json: $0.json) }
    }

    func sendMetrics(_ exchange: Exchange) {
        withFigures(exchange) {
            self.answer(
                exchange, .ok, "text/plain; version=0.0.4; charset=utf-8", $0.prometheus)
        }
    }

    func sendOrigins(_ exchange: Exchange) {
        withFigures(exchange) {
            self.answer(
                exchange,
                json: $0.transfers.originsJSON(
                    self.core.origins, hostLimits: self.core.settings.hostLimits,
                    shared: self.core.origins.sharedStore))
        }
    }

    /// Adds a listener, unless a page of another site asks: it could not read the events, but would
    /// take the place of a console.
    func beginEvents(_ exchange: Exchange) {
        guard ForeignPage.isOwnPage(exchange.request, core.settings) else {
            return refuse(exchange, .forbidden, "pages of other sites may not listen to events")
        }
        ConsoleEvents(core, status).begin(exchange)
    }

    /// Answers whether the process works; with `?ready`, whether it should get further players.
    func sendHealth(_ exchange: Exchange) {
        let asksReadiness = exchange.request.queryItems.contains { $0.rawName == "ready" }
        if asksReadiness, !core.isReady {
            answer(
                exchange, .serviceUnavailable, "application/json", "{\"status\":\"stopping\"}\n")
        } else {
            answer(exchange, .ok, "application/json", "{\"status\":\"ok\"}\n")
        }
    }

    /// Adds the slash that is missing at the end of a mount's path, as other servers do.
    private func redirectToMount(_ path: String, _ exchange: Exchange) {
        let query = exchange.request.query.map { "?\($0)" } ?? ""
        let name = path.split(separator: "/").last ?? ""
        var fields = Fields()
        // Relative: a proxy in front may have removed a base path from the request.
        fields.append(.location, "./\(name)/\(query)")
        // Mounts change when the configuration is reloaded.
        fields.append(.cacheControl, "no-store")
        core.respond(
            exchange, own: ResponseHead(status: .permanentRedirect, fields: fields), body: .none)
    }

    /// Returns a hint: the entry that a path was probably meant to be, without its query.
    private func advice(_ path: String, _ exchange: Exchange) -> String {
        if let scheme = path.dropFirst().firstRange(of: "://"),
            path[..<scheme.lowerBound].dropFirst().utf8.allSatisfy(ASCII.isLetter),
            !ASCII.lowercased(path.dropFirst()).hasPrefix("http")
        {
            return "only URLs of http and https can be played"
        }
        // A file at the root, such as /favicon.ico, looks like a host but is not one.
        let isFile = !path.dropFirst().contains("/") && !path.contains(":")
        guard !isFile, let url = EntryGuess.url(in: path) else { return "see / for what is" }
        let query = exchange.request.query == nil ? "" : ", followed by the query"
        return "did you mean \(own(exchange))/\(url.text)\(query)?"
    }

    /// Answers requests about keys and decisions, on the thread that makes offline forms.
    func explain(_ exchange: Exchange) {
        let request = exchange.request
        let answers = WhyAnswers(core.whyContext)
        let now = exchange.loop.wallNow
        let reply = replying(to: exchange)
        let isTaken = core.offline.perform(
            orReject: { reply(.failure(.serviceUnavailable, "the daemon is stopping")) }
        ) {
            reply(answers.answer(request.method, request.target, now: now))
        }
        if !isTaken {
            refuse(exchange, .serviceUnavailable, "too many requests like this wait; ask again")
        }
    }

    /// Returns why a request may not change anything; nil if it may, or changes nothing.
    private func changeFault(_ request: RequestHead) -> String? {
        guard StoreAdministration.changes(request.method) else { return nil }
        if ForeignPage.isForeignChange(request, core.settings) {
            return "pages of other sites may not change the cache"
        }
        if ForeignPage.isProved(request) { return nil }
        return "a POST needs the header Sluice-Request: 1, which no form of another site can send"
    }

    /// Answers requests for files of the console, which need no token.
    func answersFile(_ path: String, _ exchange: Exchange) -> Bool {
        let request = exchange.request
        guard OwnPage.reading.contains(request.method), ConsoleFiles.answers(path, request),
            let (head, body) = core.consoleFiles.answer(path, request)
        else { return false }
        core.respond(exchange, own: head, body: body)
        return true
    }

    func answer(_ exchange: Exchange, _ status: HTTPStatus = .ok, json: JSONValue) {
        answer(exchange, status, "application/json", json.encoded + "\n")
    }

    private func answer(
        _ exchange: Exchange, _ status: HTTPStatus, _ type: String?, _ text: String,
        allowed: [HTTPMethod] = []
    ) {
        core.counters.add(.own)
        send(exchange, status, type, text, allowed: allowed)
    }

    private func send(
        _ exchange: Exchange, _ status: HTTPStatus, _ type: String?, _ text: String,
        allowed: [HTTPMethod]
    ) {
        var fields = Fields()
        if !allowed.isEmpty {
            fields.append(
                .allow, (allowed + [.options]).map(\.description).joined(separator: ", "))
        }
        if let type { fields.append(.contentType, type) }
        fields.append(.cacheControl, "no-store")
        fields.append("X-Content-Type-Options", "nosniff")
        exchange.respond(
            ResponseHead(status: status, fields: fields),
            body: type == nil ? .none : .bytes(Array(text.utf8)))
    }

    /// Answers a failure, the client's or, from status 500 on, the daemon's; OPTIONS gets the methods
    /// of the path instead.
    private func refuse(
        _ exchange: Exchange, _ status: HTTPStatus, _ reason: String, allowed: [HTTPMethod] = []
    ) {
        if exchange.request.method == .options, !allowed.isEmpty {
            return answer(exchange, .noContent, nil, "", allowed: allowed)
        }
        let isOurs = status.rawValue >= 500
        core.counters.add(isOurs ? .ownErrors : .clientErrors)
        let failure = ProxyFailure(isOurs ? .us : .client, status, reason)
        exchange.accessRecord?.note(refusedPage: failure)
        send(exchange, status, "text/plain; charset=utf-8", failure.text, allowed: allowed)
    }

    /// Answers 405 with the methods that the path takes (RFC 9110 section 15.5.6).
    private func refuse(
        _ exchange: Exchange, method: HTTPMethod, at path: String, allowed: [HTTPMethod]
    ) {
        refuse(
            exchange, .methodNotAllowed, "\(path) does not take \(method); see Allow",
            allowed: allowed)
    }

    /// Sets the console's cookie for a client with the access token, or removes it.
    func changeSession(_ exchange: Exchange) {
        let request = exchange.request
        let begins = request.method == .post
        let path = cookiePath(request)
        var fields = Fields()
        fields.append(.cacheControl, "no-store")
        if let session = core.consoleSession {
            let own = OwnOrigin(request, isEncrypted: exchange.isEncrypted, core.settings)
            let isSecure = own.scheme == "https"
            fields.append(
                .setCookie,
                begins
                    ? session.begin(
                        now: exchange.loop.wallNow, host: own.host, path: path, isSecure: isSecure)
                    : ConsoleSession.end(host: own.host, path: path, isSecure: isSecure))
        }
        core.respond(
            exchange, own: ResponseHead(status: .noContent, fields: fields), body: .none)
    }

    /// Returns the path of the console's cookie: where the page says that it is.
    ///
    /// The base path is in front only of what comes through the proxy that removes it, and a cookie
    /// with it is not sent to the daemon itself.
    private func cookiePath(_ request: RequestHead) -> String {
        let stated = request.queryItems.first { $0.rawName == "path" }?.value()
        // A semicolon would end the attribute.
        if let stated, ProxySettings.isBasePath(stated), !stated.utf8.contains(0x3B) {
            return stated.hasSuffix("/") ? stated : stated + "/"
        }
        return LinkPrefix.path(of: request, core.settings) + "/"
    }

    /// Returns scheme, host and base path by which the client reached this daemon.
    private func own(_ exchange: Exchange) -> String {
        let request = exchange.request
        let own = OwnOrigin(request, isEncrypted: exchange.isEncrypted, core.settings)
        let path = LinkPrefix.path(of: request, core.settings)
        return "\(own.scheme)://\(own.host ?? "127.0.0.1")\(path)"
    }

    // MARK: Titles

    func askAdministration(_ exchange: Exchange) {
        let request = exchange.request
        let reply = replying(to: exchange)
        guard core.origins.sharedStore != nil, request.method == .post else {
            return status.administration.answer(request.method, request.target, reply)
        }
        let (flights, path) = (core.flights, request.path)
        status.administration.answer(
            request.method, request.target,
            accepted: { flights.publishChange(path: path, query: $0) }, reply)
    }

    func showPicture(_ path: String, _ exchange: Exchange) {
        guard let title = TitlePictures.title(ofPath: path) else { return }
        let bound = LoopBound((self, exchange), to: exchange.loop)
        let reply: @Sendable (TitlePictures.Answer) -> Void = { answer in
            bound.enqueue { pair, _ in
                guard pair.1.isAlive else { return }
                switch answer {
                case .picture(let bytes): pair.0.send(bytes, pair.1)
                case .failure(let status, let reason): pair.0.refuse(pair.1, status, reason)
                }
            }
        }
        guard let pictures = status.pictures else { return reply(TitlePictures.off) }
        pictures.answer(title, reply)
    }

    /// Sends a picture, which shared caches must not keep: it shows what was watched.
    private func send(_ picture: [UInt8], _ exchange: Exchange) {
        var fields = Fields()
        fields.append(.contentType, "image/jpeg")
        fields.append(.cacheControl, "private, max-age=600")
        fields.append("Content-Security-Policy", ConsoleFiles.policy)
        fields.append("X-Content-Type-Options", "nosniff")
        fields.append("Cross-Origin-Resource-Policy", "same-origin")
        core.respond(
            exchange, own: ResponseHead(status: .ok, fields: fields), body: .bytes(picture))
    }

    /// Returns a callback that passes another thread's answer to the waiting exchange.
    func replying(to exchange: Exchange) -> @Sendable (AdministrationAnswer) -> Void {
        let bound = LoopBound((self, exchange), to: exchange.loop)
        return { answer in
            bound.enqueue { pair, _ in
                guard pair.1.isAlive else { return }
                switch answer {
                case .value(let status, let value): pair.0.answer(pair.1, status, json: value)
                case .failure(let status, let reason): pair.0.refuse(pair.1, status, reason)
                case .methodNotAllowed(let allowed, let reason):
                    pair.0.refuse(pair.1, .methodNotAllowed, reason, allowed: allowed)
                }
            }
        }
    }

    // MARK: Figures

    private func withFigures(_ exchange: Exchange, _ body: @escaping (Figures) -> Void) {
        Figures.gather(core, status, on: exchange.loop) { figures in
            if exchange.isAlive { body(figures) }
        }
    }
}
