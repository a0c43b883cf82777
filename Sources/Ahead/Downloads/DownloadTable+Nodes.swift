// Downloads of all nodes: tells the others what was ordered here, and takes over what they leave.
import DurableState
import HTTP
import Library
import Model
import Origin
import Posix
import Reactor
import Routing
import SharedStore
import Store
import URISyntax

extension DownloadTable {
    /// Keeps downloads for the orders of all nodes, and tells of those of the previous run.
    func keepOrders() {
        guard services.flights.orders != nil else { return }
        let bound = LoopBound(self, to: loop)
        services.flights.keepOrders(
            .download,
            NodeOrders.Keeper(
                take: { order in bound.enqueue { table, _ in table.take(order) } },
                release: { order, _ in bound.enqueue { table, _ in table.release(order) } },
                change: { order in bound.enqueue { table, _ in table.change(order) } },
                progress: { done in bound.enqueue { table, _ in done(table.shownToNodes) } }))
        for id in order {
            guard let download = downloads[id], let shared = shared(download) else { continue }
            services.flights.holdOrder(
                shared, download.state.isPaused ? .pause : .run, query: download.order.query)
        }
    }

    /// Returns the ID of a download in the cluster; nil if it stays with this node.
    private func shared(_ download: Download) -> SharedOrderID? {
        guard let orders = services.flights.orders,
            orders.keepsSecrets || !download.order.holdsSecrets
        else { return nil }
        return SharedOrderID(.download, download.id.text)
    }

    /// Returns the version of an order that the caller saves and then passes to `tellNodes`; nil if
    /// the download stays with this node.
    func version(of download: Download, _ wish: SharedOrder.Wish) -> SharedOrder? {
        guard let id = shared(download) else { return nil }
        return services.flights.orders?.version(
            of: id, wish, query: download.order.query, now: loop.wallNow)
    }

    /// Returns a time later than that of any order for a title that was seen; nil without a shared
    /// store.
    func orderTime(of id: SessionID) -> WallTime? {
        guard let orders = services.flights.orders,
            let shared = SharedOrderID(.download, id.text)
        else { return nil }
        return orders.time(of: shared, now: loop.wallNow)
    }

    /// Tells the other nodes what was saved.
    func tellNodes(_ version: SharedOrder?) {
        guard let version else { return }
        services.flights.giveOrder(version, isHere: true)
    }

    /// The order that another node holds; nil without one.
    func elsewhere(_ id: SessionID) -> OrderBoard.View? {
        guard downloads[id] == nil, let orders = services.flights.orders,
            let shared = SharedOrderID(.download, id.text)
        else { return nil }
        return orders.elsewhere(shared)
    }

    /// Saves an order for the node that holds a download, and sends it to that node.
    func tellHolder(
        of view: OrderBoard.View, _ wish: SharedOrder.Wish, query: String? = nil
    ) throws(AdministrationRefusal) {
        let version = services.flights.orders?.version(
            of: view.order.id, wish, query: query ?? view.order.query, now: loop.wallNow)
        guard let version else {
            throw AdministrationRefusal(
                .badRequest, "the order is too long for the node that holds the download")
        }
        do throws(StateFault) {
            try services.store.state.keep([version.record])
        } catch {
            throw Self.unsaved(error, "the download is left as it was", again: "ask again")
        }
        services.flights.giveOrder(version, isHere: false)
    }

    // MARK: What other nodes leave here

    private func take(_ shared: SharedOrder) {
        guard let order = DownloadOrder(sharedQuery: shared.query) else {
            return services.flights.refuseOrder(
                shared.id, "it has arguments that this version does not know")
        }
        let session = services.sessions.session(for: order.entry)
        guard session.id.text == shared.id.number else {
            return services.flights.refuseOrder(
                shared.id, "its title has the number \(session.id.text) in this version")
        }
        guard downloads[session.id] == nil else { return }
        let download = Download(order, id: session.id, session: session, table: self)
        download.state = shared.wish == .pause ? .paused() : .queued
        download.isPinnedBefore = isPinned(download)
        download.carriedOut = shared.given
        insert(download)
        save(download)
    }

    private func download(of shared: SharedOrder) -> Download? {
        SessionID(text: shared.id.number).flatMap { downloads[$0] }
    }

    private func release(_ shared: SharedOrder) {
        guard let download = download(of: shared), !download.state.isComplete else { return }
        remove(download)
    }

    private func change(_ shared: SharedOrder) {
        guard let download = download(of: shared) else { return }
        switch shared.wish {
        case .cancel, .end:
            // Each start hears of it for a month, and may have a download that was ordered later
            // and that other nodes know nothing of.
            if let last = download.carriedOut, last > shared.given { return }
            remove(download)
        case .pause: pauseHere(download)
        case .run:
            // After a restart each order comes once more, and asks for nothing new.
            guard shared.given != download.carriedOut,
                let order = DownloadOrder(sharedQuery: shared.query)
            else { return }
            if order == download.order { return resume(download, asOrdered: shared.given) }
            // A change that cannot be met leaves the download as it is.
            add(here: order, isTold: false) { [weak self] reply in
                guard case .taken(let changed) = reply else { return }
                changed.carriedOut = shared.given
                self?.save(changed)
            }
        }
    }

    /// Carries out a `resume` of another node, unless nothing is to be done.
    private func resume(_ download: Download, asOrdered given: WallTime) {
        // A record of an earlier version lacks `carriedOut`. The times of order and start decide
        // then, although the clocks of nodes differ.
        let mayBeOld = download.carriedOut == nil && given <= started
        switch download.state {
        case .paused: resumeHere(download)
        case .failed where !mayBeOld: resumeHere(download)
        case .complete where !mayBeOld && !isWhole(download): resumeHere(download)
        case .presumedComplete where !mayBeOld: resumeHere(download)
        default: break
        }
        download.carriedOut = given
        save(download)
    }

    private var shownToNodes: [SharedOrderProgress] {
        order.compactMap { id in
            guard let download = downloads[id], let shared = shared(download) else { return nil }
            return download.shown(as: shared)
        }
    }
}

extension OrderBoard.View {
    /// The member of a listing on a node that does not hold it.
    var downloadJSON: JSONValue {
        let url = DownloadOrder(sharedQuery: order.query)?.url
        let derived = url.map(TitleName.derived(from:)) ?? order.id.number
        // The node may be of an earlier version.
        let told = progress.map { progress in
            url.map { TitleName.saved(progress.name, of: $0) } ?? progress.name
        }
        return .object([
            .init("id", .text(order.id.number)),
            .init("name", .text(told ?? derived)),
            .init("url", .text(url?.redacted ?? "")),
            .init(
                "state", .text(isHeard && !isRefused ? progress?.state ?? "queued" : "waiting")),
            .init("reason", obstacle.map(JSONValue.text) ?? .null),
            .init("refreshing", .null),
            .init("refreshed", .null),
            .init("streams", .list([])),
            .init("pieces", .number(0)),
            .init("pieces_done", .number(0)),
            .init("percent", .number(progress?.percent ?? 0)),
            .init("bytes", .number(progress?.bytes ?? 0)),
            .init("bytes_expected", .null),
            .init("is_estimate", .truth(false)),
            .init("brought_bytes", .number(0)),
            .init("seconds", .number(0)),
            .init("rate", .number(0)),
            .init("transfers", .number(0)),
            .init("seconds_left", .null),
            .init("encryption", .null),
            .init("node", holderName.map(JSONValue.text) ?? .null),
        ])
    }
}
