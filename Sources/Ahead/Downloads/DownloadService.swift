// The thread-safe access to downloads: their thread, and the requests under `/api/downloads`.
import DurableState
package import HTTP
package import Library
import Logging
import Lookahead
import Model
import Numbers
import Origin
package import Posix
import Reactor
import Routing
import SharedStore
import Store
import Synchronization
import URISyntax

/// Accepts download orders and reports their state.
///
/// Can be used from any thread.
package final class DownloadService: Sendable {
    private let services: AheadServices
    private let thread: LoopThread
    private let table = Mutex<LoopBound<DownloadTable>?>(nil)
    /// True while a look for losses waits for the thread, or for the index.
    private let awaitsLook = Atomic<Bool>(false)

    /// Starts the thread and restores the downloads of the previous run.
    ///
    /// - Throws: `SystemError` when there is no room for another thread.
    package init(services: AheadServices, rules: DownloadRules) throws(SystemError) {
        self.services = services
        thread = try LoopThread(name: "downloads") { _ in }
        thread.handle.enqueue { [self] loop in
            let made = DownloadTable(services: services, rules: rules, loop: loop)
            let bound = LoopBound(made, to: loop)
            table.withLock { $0 = bound }
        }
    }

    /// Runs `body` on the downloads' thread, whose first work makes the table.
    ///
    /// - Returns: false if the thread has ended, and `body` is not run.
    @discardableResult
    private func onThread(
        file: StaticString = #fileID, line: UInt = #line,
        _ body: @escaping @Sendable (DownloadTable) -> Void
    ) -> Bool {
        thread.handle.enqueue(file: file, line: line) { [self] loop in
            if let table = table.withLock({ $0 }) { body(table.value(on: loop)) }
        }
    }

    /// Replaces the rules for all downloads.
    package func use(_ rules: DownloadRules) { onThread { $0.rules = rules } }

    /// Notes that titles may have lost objects of their own, or that their pins name.
    package func note(removedFrom titles: Set<UInt64>) {
        onThread { $0.note(removedFrom: titles) }
    }

    /// Checks complete downloads for lost objects, for example after a backup without media was
    /// restored.
    ///
    /// If this run ends first, the next start checks. A check that has not begun serves all calls:
    /// it may take longer than a failing disk takes to lose the next object.
    package func lookForLosses() {
        guard !awaitsLook.exchange(true, ordering: .acquiringAndReleasing) else { return }
        onThread { [self] table in lookForLosses(table) }
    }

    private func lookForLosses(_ table: DownloadTable) {
        // Until the index is reconciled, rows are missing, and a check would open the file of each
        // object.
        guard services.store.statistics().isReconciled else {
            table.loop.schedule(after: .seconds(1)) { [self, unowned table] _ in
                lookForLosses(table)
            }
            return
        }
        _ = awaitsLook.exchange(false, ordering: .acquiringAndReleasing)
        let noted = services.store.notedLosses
        table.note(removedFrom: Set(table.downloads.keys.map(\.number)))
        do {
            // Also commits the states that could not be saved at once.
            try services.store.state.keep([any StateRecord]())
            try services.store.forgetLosses(noted: noted)
        } catch {
            services.log.warning(
                "losses of complete downloads could not be saved; the next start checks again",
                metadata: ["reason": "\(error)"])
        }
    }

    /// Ends the thread; active downloads continue in the next run of the daemon.
    ///
    /// Blocks.
    package func stop() {
        onThread { table in
            table.network.remember()
            table.saveDay(atOnce: true)
        }
        thread.stopAndJoin()
        table.withLock { $0 = nil }
    }

    /// True if this service responds to a path.
    package static func answers(_ path: String) -> Bool {
        path == "/api/downloads" || path.hasPrefix("/api/downloads/") || path == "/api/export"
    }

    /// Responds to a request; `done` is called on the downloads' thread.
    package func answer(
        _ method: HTTPMethod, _ target: String,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        let isTaken = onThread { table in
            Self.answer(RequestHead(method: method, target: target), table, done)
        }
        if !isTaken { done(.failure(.serviceUnavailable, "the daemon is stopping")) }
    }

    private static func answer(
        _ request: RequestHead, _ table: DownloadTable,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        switch (request.method, request.path) {
        case (.post, "/api/downloads"), (.post, "/api/downloads/"):
            order(request.query ?? "", isDryRun: false, table, done)
        case (.post, dryRunPath):
            order(request.query ?? "", isDryRun: true, table, done)
        default:
            do throws(AdministrationRefusal) {
                done(try answer(request, table))
            } catch {
                done(error.answer)
            }
        }
    }

    private static let dryRunPath = "/api/downloads/dry-run"

    private static func answer(
        _ request: RequestHead, _ table: DownloadTable
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        let parts = request.path.split(separator: "/").dropFirst(2).map(String.init)
        let isRead = request.method == .get || request.method == .head
        if request.path == "/api/export" {
            guard isRead else {
                return .methodNotAllowed(allowed: [.get, .head], "an export is read with GET")
            }
            return try DownloadExport.answer(request.query ?? "", services: table.services)
        }
        if request.path == dryRunPath {
            return .methodNotAllowed(allowed: [.post], "a dry run is ordered with POST")
        }
        switch (parts.count, isRead, request.method == .post) {
        case (0, true, _):
            let query = AdministrationQuery(request.query ?? "")
            guard let most = query.number("limit", in: 1...1_000, default: .max) else {
                throw AdministrationRefusal(.badRequest, "limit is a number in 1...1000")
            }
            return .value(.ok, table.json(atMost: most))
        case (1, true, _), (2, _, true):
            guard let id = SessionID(text: parts[0]), let download = table.downloads[id] else {
                return try elsewhere(parts, table)
            }
            guard parts.count == 2 else { return .value(.ok, download.json) }
            return try change(download, parts[1], table)
        default:
            return .methodNotAllowed(
                allowed: parts.count == 0
                    ? [.get, .head, .post] : parts.count == 1 ? [.get, .head] : [.post],
                "downloads are read with GET, and ordered and changed with POST")
        }
    }

    private static func order(
        _ query: String, isDryRun: Bool, _ table: DownloadTable,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        do throws(AdministrationRefusal) {
            let services = table.services
            let order = try DownloadOrder(query: query) { services.titleStart($0)?.url }
            guard !services.addresses.contains(order.url) else {
                throw AdministrationRefusal(.badRequest, "the URL leads back to this daemon")
            }
            guard !isDryRun else { return table.dryRun(order, done) }
            table.add(order) { reply in
                switch reply {
                case .taken(let download): done(.value(.created, download.json))
                case .passedOn(let view): done(.value(.accepted, view.downloadJSON))
                case .refused(let refusal): done(refusal.answer)
                }
            }
        } catch {
            done(error.answer)
        }
    }

    /// Answers a request for a download of another node; a change is passed on to that node.
    private static func elsewhere(
        _ parts: [String], _ table: DownloadTable
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        guard let orders = table.services.flights.orders,
            let view = orders.elsewhere(.download).first(where: { $0.order.id.number == parts[0] })
        else { throw AdministrationRefusal(.notFound, "there is no download \(parts[0])") }
        guard parts.count == 2 else { return .value(.ok, view.downloadJSON) }
        let wishes: [String: SharedOrder.Wish] = [
            "pause": .pause, "resume": .run, "cancel": .cancel,
        ]
        guard parts[1] != "refresh" else {
            let place = view.holderName.map { "node \($0) holds it" } ?? "no node has it yet"
            throw AdministrationRefusal(
                .conflict, "a download is refreshed at the node that holds it; \(place)")
        }
        guard let wish = wishes[parts[1]] else { throw unknownVerb }
        try table.tellHolder(of: view, wish)
        return .value(.accepted, view.downloadJSON)
    }

    private static let unknownVerb = AdministrationRefusal(
        .notFound, "a download can be paused, resumed, refreshed or cancelled")

    private static func change(
        _ download: Download, _ verb: String, _ table: DownloadTable
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        if verb == "refresh" {
            try table.refresh(download)
            return .value(.ok, download.json)
        }
        if verb == "pause", table.stopRefresh(of: download) { return .value(.ok, download.json) }
        do throws(StateFault) {
            switch (verb, download.state) {
            case ("resume", .complete) where !table.isWhole(download),
                ("resume", .presumedComplete):
                try table.resume(download)
            case ("pause", .complete), ("pause", .presumedComplete), ("resume", .complete):
                return .failure(
                    .conflict, "\(download.name) is complete: there is nothing to \(verb)")
            case ("pause", .failed(let reason)):
                return .failure(.conflict, "\(download.name) does not run: it failed: \(reason)")
            case ("pause", _): try table.pause(download)
            case ("resume", _): try table.resume(download)
            case ("cancel", _): try table.cancel(download)
            default: return unknownVerb.answer
            }
            return .value(.ok, download.json)
        } catch {
            throw DownloadTable.unsaved(
                error, "\(download.name) is left as it was", again: "ask again")
        }
    }
}
