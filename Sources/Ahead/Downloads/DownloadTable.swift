// All downloads: their scheduling, their limits and their records.
import DurableState
import HTTP
import Library
import Logging
import Lookahead
import Model
import Origin
import Posix
import Reactor
import Routing
import SharedStore
import Store

/// The table of downloads; confined to the downloads' thread, which may block on the disk.
package final class DownloadTable {
    let services: AheadServices
    let loop: EventLoop
    var rules: DownloadRules
    let network: NetworkWatch
    private(set) var downloads: [SessionID: Download] = [:]
    private(set) var order: [SessionID] = []
    /// Changed orders for existing downloads, by ID, until it is known whether they can be met.
    var proposals: [SessionID: Download] = [:]
    /// Orders that are only planned, until they are described.
    var dryRuns: [Download] = []
    /// The most dry runs at a time.
    static let mostDryRuns = 16
    /// The refreshes of complete downloads, by ID; a restart ends them.
    var refreshes: [SessionID: Download] = [:]
    private var day: DownloadDay
    private var isTicking = false
    /// True while a look is scheduled.
    private var isToLook = false
    private var tickedAt: Monotonic
    /// The start of this run.
    let started: WallTime

    init(services: AheadServices, rules: DownloadRules, loop: EventLoop) {
        self.services = services
        self.loop = loop
        self.rules = rules
        let kept = services.store.state.records(DownloadDayRecord.self).first
        day = DownloadDay(day: kept?.day ?? "", bytes: kept?.bytes ?? 0)
        tickedAt = loop.now
        started = loop.wallNow
        network = NetworkWatch(
            services.flights, services.concurrency, log: services.log, state: services.store.state,
            loop: loop)
        lookAround(rounds: 0)
        for record in services.store.state.records(DownloadRecord.self) {
            if let saved = SavedDownload(record) { take(saved) }
        }
        if !downloads.isEmpty { wake() }
        keepOrders()
    }

    private func take(_ saved: SavedDownload) {
        let session = services.sessions.session(for: saved.order.entry)
        let download = Download(saved.order, id: session.id, session: session, table: self)
        download.name = saved.name
        download.kept = saved.summary
        download.state = saved.state
        download.isPinnedBefore = saved.isPinnedBefore
        download.carriedOut = saved.carriedOut
        download.lastRefresh = saved.lastRefresh
        download.formerKeys = saved.formerKeys
        downloads[session.id] = download
        order.append(session.id)
        guard saved.state.isActive,
            let reason = services.crashes.verdict(on: .download, session.id.text)
        else { return }
        download.state = .paused(reason: reason)
        services.crashes.forget(.download, session.id.text)
        save(download)
    }

    // MARK: Changing

    /// Adds a download that is saved, or is saved next.
    func insert(_ download: Download) {
        downloads[download.id] = download
        order.append(download.id)
        wake()
    }

    /// Puts a changed order, which is saved, in place of a download.
    func replace(_ known: Download, by changed: Download) {
        dropRefresh(of: known.id)
        // No longer the table's, so that stopping it does not save it over the new order.
        downloads[known.id] = changed
        known.stop(as: known.state)
    }

    /// Removes a download whose removal is saved, or is saved next.
    func forget(_ download: Download) {
        dropRefresh(of: download.id)
        // No longer the table's, so that stopping it does not save it.
        downloads[download.id] = nil
        order.removeAll { $0 == download.id }
        download.stop(as: .paused())
        wake()
    }

    // MARK: Scheduling

    /// Checks all downloads in the loop's next round, and then twice a second while any is active.
    func wake() {
        lookSoon()
        guard !isTicking else { return }
        isTicking = true
        tickedAt = loop.now
        tick()
    }

    /// Every two seconds, ends the probations after crashes and, while fetches are in flight, reads
    /// the machine's load.
    ///
    /// Twice a minute it also checks for another network and saves the measured limit of this one.
    private func lookAround(rounds: Int) {
        loop.schedule(after: .seconds(2)) { [weak self] _ in
            guard let self else { return }
            services.crashes.endProbations()
            guard services.concurrency.now.inFlight > 0 else { return lookAround(rounds: rounds) }
            if rounds % 15 == 0 { network.look() }
            network.lookAround()
            if rounds % 15 == 14 { network.remember() }
            lookAround(rounds: rounds + 1)
        }
    }

    /// Schedules one look, however many downloads ask for it in a round: a look is at all of them.
    private func lookSoon() {
        guard !isToLook else { return }
        isToLook = true
        loop.schedule(after: .zero) { [weak self] _ in
            guard let self else { return }
            isToLook = false
            look()
        }
    }

    private func tick() {
        loop.schedule(after: .milliseconds(500)) { [weak self] _ in
            guard let self else { return }
            let seconds = (loop.now - tickedAt).inSeconds
            tickedAt = loop.now
            for download in downloads.values { measure(download, seconds) }
            for download in refreshes.values { measure(download, seconds) }
            look()
            saveDay(atOnce: false)
            let goesOn = downloads.values.contains {
                $0.state.isActive || $0.state == .presumedComplete
            }
            guard goesOn || !refreshes.isEmpty else {
                isTicking = false
                return saveDay(atOnce: true)
            }
            tick()
        }
    }

    private func measure(_ download: Download, _ seconds: Double) {
        let bytes = download.broughtBytes + partsUnderWay(of: download).brought
        if download.state == .running {
            // The total shrinks when a part that broke off is fetched again.
            download.goodput.add(bytes: max(0, bytes - download.bytesAtTick), seconds: seconds)
        }
        download.bytesAtTick = bytes
        if let rate = rate(of: download) {
            download.pace.pass(seconds, at: rate)
        }
    }

    /// Starts queued downloads and suspends those that must wait.
    private func look() {
        var round = DownloadRound(obstacle: obstacle())
        for id in order {
            guard let download = downloads[id] else { continue }
            if download.state == .presumedComplete, round.obstacle == nil {
                download.stop(as: .queued)
            }
            take(download, in: &round)
        }
        // After all orders: what they refresh is complete already.
        guard !refreshes.isEmpty else { return }
        for id in order {
            guard let download = refreshes[id] else { continue }
            if downloads[id]?.state.isActive != false {
                dropRefresh(of: id)
            } else if let obstacle = round.obstacle, download.state != .checking {
                guard !download.isStoringPlaylists else { continue }
                failRefresh(download, obstacle)
                saveDay(atOnce: true)
            } else {
                take(download, in: &round)
            }
        }
    }

    /// Takes the step of a download in a look at all of them.
    private func take(_ download: Download, in round: inout DownloadRound) {
        switch round.step(download.state, isDue: download.state.isDue(at: loop.now)) {
        case .nothing: break
        case .suspend(let reason):
            download.stop(as: .waiting(reason))
            saveDay(atOnce: true)
        case .wait(let reason): download.state = .waiting(reason)
        case .start: download.start()
        case .goOn: download.goOn()
        case .pump: download.pump()
        }
        round.note(download.state)
    }

    /// Returns the reason that stops all downloads now; nil without one.
    func obstacle() -> String? { day.obstacle(rules, at: LocalTime(.now())) }

    /// True if the daily budget is not used up.
    var hasBudget: Bool { day.hasBudget(rules) }

    /// Returns the bytes per second that a download may take: its own rate, limited by its share of
    /// the common rate.
    func rate(of download: Download) -> Int64? {
        DownloadPace.rate(
            own: download.order.rate, common: rules.rate,
            running: downloads.values.count { $0.state == .running }
                + refreshes.values.count { $0.state == .running })
    }

    /// Counts fetched bytes against the daily budget.
    func count(_ bytes: Int64) { day.count(bytes) }

    /// Saves the bytes of the day; unless `atOnce`, only after every 8 MiB.
    func saveDay(atOnce: Bool) {
        guard rules.dailyBytes != nil, day.beginsSaving(atOnce: atOnce) else { return }
        services.store.state.put(DownloadDayRecord(day: day.day, bytes: day.bytes))
    }

    // MARK: Saving

    /// Saves the state for the next run; if that fails, logs an error and queues the record.
    func save(_ download: Download) {
        guard downloads[download.id] === download else { return }
        do throws(StateFault) {
            try services.store.state.keep([download.record])
        } catch {
            services.log.error(
                "a download's state cannot be saved",
                metadata: ["title": "\(download.id.text)", "error": "\(error)"])
            // Retried each second, as is every other change of state.
            services.store.state.put(download.record)
        }
    }
}
