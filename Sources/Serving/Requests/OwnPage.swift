// The table of the daemon's own pages: which paths there are, with which methods, for whom.
import Ahead
import Console
import HTTP
import HTTPServer
import Library
import Model
import TimeShifting

/// A page of the daemon itself, or all pages of a service.
struct OwnPage: Sendable {
    /// The paths of a page.
    enum Place: Sendable {
        case path(String)
        case paths(@Sendable (String) -> Bool)

        func contains(_ path: String) -> Bool {
            switch self {
            case .path(let own): own == path
            case .paths(let contains): contains(path)
            }
        }
    }

    /// Who may read a page, where the daemon has an access token.
    enum Access: Sendable {
        case everybody
        /// Clients with the token, or with the console's session, which was begun with it.
        case token
        /// Like `token`, but a session cannot begin another one: sessions would then never end.
        case session
    }

    /// Answers a request; gets the pages of the loop, the requested path and the exchange.
    typealias Answer = @Sendable (OwnPages, String, Exchange) -> Void

    let place: Place
    /// The methods besides OPTIONS; nil for a service that checks methods itself.
    let methods: [HTTPMethod]?
    let access: Access
    /// Its lines of the help, with `~` for the daemon's address; nil if another page's name it.
    let help: String?
    /// Answers a request with one of the methods.
    let answer: Answer

    private init(
        _ place: Place, _ methods: [HTTPMethod]?, for access: Access = .token,
        help: String? = nil, _ answer: @escaping Answer
    ) {
        self.place = place
        self.methods = methods
        self.access = access
        self.help = help
        self.answer = answer
    }

    /// The methods of what is only read.
    static let reading: [HTTPMethod] = [.get, .head]

    /// Returns the page at a path; nil if there is none.
    static func find(_ path: String) -> OwnPage? { all.first { $0.place.contains(path) } }

    /// Returns who may request a path, whether or not there is a page.
    static func access(to path: String) -> Access { find(path)?.access ?? .token }

    /// The lines of the help.
    static let helpText: String = all.compactMap(\.help).map { $0 + "\n" }.joined()

    /// All pages; the first that contains a path answers.
    static let all: [OwnPage] = figures + services

    private static let figures: [OwnPage] = [
        OwnPage(
            .path("/"), reading,
            help: """
                Play through it:  ~/https://cdn.example.com/vod/master.m3u8
                                  ~/proxy?url=<percent-encoded URL>&h_Referer=<value>
                In a browser:     ~/ is the console
                """
        ) { pages, _, exchange in pages.sendHelp(exchange) },
        // Load balancers ask for it, and it tells nothing else.
        OwnPage(.path("/api/health"), reading, for: .everybody) { pages, _, exchange in
            pages.sendHealth(exchange)
        },
        OwnPage(
            .path("/api/stats"), reading,
            help: "Figures:          ~/api/stats (JSON), ~/metrics (Prometheus)"
        ) { pages, _, exchange in pages.sendStatistics(exchange) },
        OwnPage(.path("/metrics"), reading) { pages, _, exchange in pages.sendMetrics(exchange) },
        OwnPage(
            .path("/api/origins"), reading, help: "Origins:          ~/api/origins"
        ) { pages, _, exchange in pages.sendOrigins(exchange) },
        OwnPage(
            .path("/api/events"), [.get],
            help: "Events:           ~/api/events (server-sent events), ~/api/history (a day)"
        ) { pages, _, exchange in pages.beginEvents(exchange) },
        OwnPage(.path("/api/history"), reading) { pages, _, exchange in
            pages.answer(exchange, json: pages.status.history.json)
        },
        OwnPage(.path("/api/settings"), reading) { pages, _, exchange in
            pages.answer(exchange, json: pages.core.settingsList.json)
        },
        OwnPage(.path("/api/session"), [.post, .delete], for: .session) { pages, _, exchange in
            pages.changeSession(exchange)
        },
        // Those that exist were answered before the token was asked for.
        OwnPage(.paths { ConsoleFiles.contains($0) }, reading) { pages, path, exchange in
            pages.refuseUnknown(path, exchange)
        },
    ]

    private static let services: [OwnPage] = [
        OwnPage(
            .paths { WhyAnswers.answers($0) }, nil,
            help: """
                Explain:          ~/api/why?url=<percent-encoded URL>, ~/api/inspect?url=...
                """
        ) { pages, _, exchange in pages.explain(exchange) },
        // Before the titles, which have the same paths.
        OwnPage(
            .paths { TitlePictures.title(ofPath: $0) != nil }, reading,
            help: "Pictures:         ~/api/titles/<number>/picture, with --title-pictures on"
        ) { pages, path, exchange in pages.showPicture(path, exchange) },
        OwnPage(
            .paths { StoreAdministration.answers($0) }, nil,
            help: """
                Titles:           ~/api/titles?limit=<1...1000>, ~/api/titles/<number or URL>
                Disk:             ~/api/df
                Changes:          send Sluice-Request: 1 with each POST
                Pin, unpin:       POST ~/api/pin?url=<percent-encoded URL>, /api/unpin?url=...
                Purge:            POST ~/api/purge?url=... or title=, host=, prefix=, older-than=<30d>
                Clear:            POST ~/api/clear; ?pinned=true for pinned titles too
                Verify all bytes: POST ~/api/verify, then GET
                """
        ) { pages, _, exchange in pages.askAdministration(exchange) },
        OwnPage(
            .paths { $0 == "/api/recordings" || $0.hasPrefix("/api/recordings/") }, nil,
            help: """
                Record:           POST ~/api/recordings?url=...&for=2h, then GET ~/api/recordings
                """
        ) { pages, _, exchange in
            let request = exchange.request
            pages.core.timeShiftThread.answer(
                request.method, request.target, pages.replying(to: exchange))
        },
        OwnPage(
            .paths { DownloadService.answers($0) }, nil,
            help: """
                Downloads:        POST ~/api/downloads?url=<percent-encoded URL>&variant=best, then GET
                                  POST ~/api/downloads/<number>/pause, /resume, /cancel
                                  POST ~/api/downloads/dry-run?url=... tells the size only
                """
        ) { pages, _, exchange in
            let request = exchange.request
            pages.status.downloads.answer(
                request.method, request.target, pages.replying(to: exchange))
        },
        OwnPage(
            .paths { FeedService.answers($0) }, nil,
            help: """
                Feeds:            PUT, GET, DELETE ~/api/feeds/<name>, POST .../position?index=<n>
                """
        ) { pages, _, exchange in
            pages.core.feedService.answer(exchange, pages.replying(to: exchange))
        },
    ]
}
