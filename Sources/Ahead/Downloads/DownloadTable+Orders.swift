// Orders and changes of downloads: each is on the disk before it is carried out and confirmed.
import DurableState
import HTTP
import Library
import Logging
import Model
import Origin
import Posix
import Reactor
import Routing
import SharedStore
import Store

extension DownloadTable {
    /// The result of an order.
    enum Reply {
        case taken(Download)
        /// Another node holds the download of this title, and is told of the order.
        case passedOn(OrderBoard.View)
        case refused(AdministrationRefusal)
    }

    /// Adds an order, which starts in turn, or changes the download of the same title.
    ///
    /// An existing download is changed only once it is known that the new order can be met.
    func add(_ new: DownloadOrder, _ reply: @escaping (Reply) -> Void) {
        let session = services.sessions.session(for: new.entry)
        guard let view = elsewhere(session.id) else {
            return add(here: new, isTold: true, reply)
        }
        do throws(AdministrationRefusal) {
            try tellHolder(of: view, .run, query: new.query)
            reply(.passedOn(view))
        } catch {
            reply(.refused(error))
        }
    }

    /// Adds or changes a download of this node; `isTold` if the other nodes are told of it.
    func add(here new: DownloadOrder, isTold: Bool, _ reply: @escaping (Reply) -> Void) {
        let session = services.sessions.session(for: new.entry)
        if let known = downloads[session.id] {
            return change(known, to: new, isTold: isTold, reply)
        }
        let download = Download(new, id: session.id, session: session, table: self)
        download.isPinnedBefore = isPinned(download)
        // Also if the other nodes are not told: a `cancel` from before is not meant for it.
        download.carriedOut = orderTime(of: session.id)
        do throws(StateFault) {
            let version = try keep(download, isTold: isTold)
            insert(download)
            tellNodes(version)
            reply(.taken(download))
        } catch {
            reply(.refused(Self.unsaved(error, "nothing is downloaded")))
        }
    }

    /// Saves an order that begins or goes on, and returns what the other nodes are then told.
    private func keep(
        _ download: Download, isTold: Bool
    ) throws(StateFault) -> SharedOrder? {
        let version = isTold ? version(of: download, .run) : nil
        let state: Download.State = download.state.isActive ? download.state : .queued
        var record = download.record(in: state)
        if let version { record.carriedOut = version.given.nanoseconds }
        try services.store.state.keep([StateChange(record)] + Self.changes(version))
        if let version { download.carriedOut = version.given }
        return version
    }

    private static func changes(_ version: SharedOrder?) -> [StateChange] {
        version.map { [StateChange($0.record)] } ?? []
    }

    private func change(
        _ known: Download, to new: DownloadOrder, isTold: Bool,
        _ reply: @escaping (Reply) -> Void
    ) {
        if known.order == new, !known.state.isComplete {
            do throws(StateFault) {
                let version = try keep(known, isTold: isTold)
                // The last order counts, even if it repeats the one that is carried out.
                endProposal(for: known)
                resumeHere(known)
                tellNodes(version)
                return reply(.taken(known))
            } catch {
                return reply(.refused(Self.unsaved(error, "the download is left as it was")))
            }
        }
        endProposal(for: known)
        let proposal = Download(new, id: known.id, session: known.session, table: self)
        proposal.name = known.name
        proposal.isPinnedBefore = known.isPinnedBefore
        proposal.carriedOut = known.carriedOut
        proposal.formerKeys = known.formerKeys
        // Its playlists may name what the origin refused.
        if case .failed = known.state { proposal.renewFirst() }
        proposals[known.id] = proposal
        proposal.verdict = { [weak self, unowned proposal] verdict in
            guard let self else { return }
            proposals[known.id] = nil
            proposal.verdict = nil
            // A refresh that is dropped amid storing would leave playlists of two versions, or
            // others than those that were planned from.
            let isKnown =
                downloads[known.id] === known && refreshes[known.id]?.refresh != .storing
            switch verdict {
            case .canBeMet where isKnown:
                do throws(StateFault) {
                    let version = try keep(proposal, isTold: isTold)
                    replace(known, by: proposal)
                    tellNodes(version)
                    reply(.taken(proposal))
                } catch {
                    proposal.stop(as: .paused())
                    reply(.refused(Self.unsaved(error, "the download is left as it was")))
                }
            case .canBeMet:
                proposal.stop(as: .paused())
                let reason = "the download was changed or refreshed meanwhile; order it again"
                reply(.refused(AdministrationRefusal(.conflict, reason)))
            case .cannotBeMet(let reason):
                proposal.run += 1
                reply(.refused(Self.unchanged(.conflict, reason)))
            case .undecided(let reason):
                proposal.run += 1
                reply(.refused(Self.unchanged(.badGateway, reason)))
            }
        }
        proposal.start()
    }

    /// Plans an order as if it had been placed, and describes it; places and saves nothing.
    ///
    /// Playlists that it reads are stored, as those that a player reads.
    func dryRun(_ order: DownloadOrder, _ reply: @escaping (AdministrationAnswer) -> Void) {
        guard dryRuns.count < Self.mostDryRuns else {
            let reason = "\(Self.mostDryRuns) dry runs wait for their origins; ask again later"
            return reply(.failure(.serviceUnavailable, reason))
        }
        let session = services.sessions.session(for: order.entry)
        let planned = Download(order, id: session.id, session: session, table: self)
        planned.isDryRun = true
        dryRuns.append(planned)
        planned.verdict = { [weak self, unowned planned] verdict in
            planned.verdict = nil
            planned.run += 1
            planned.state = .paused()
            let answer: AdministrationAnswer =
                switch verdict {
                case .canBeMet: .value(.ok, planned.dryRunJSON())
                case .cannotBeMet(let reason): .failure(.conflict, reason)
                case .undecided(let reason): .failure(.badGateway, reason)
                }
            self?.dryRuns.removeAll { $0 === planned }
            reply(answer)
        }
        planned.start()
    }

    private func endProposal(for known: Download) {
        proposals[known.id]?.verdict?(.cannotBeMet("another order took its place"))
    }

    private static func unchanged(
        _ status: HTTPStatus, _ reason: String
    ) -> AdministrationRefusal {
        AdministrationRefusal(status, "\(reason); the download is left as it was")
    }

    /// The answer to an order that the disk does not take.
    static func unsaved(
        _ fault: StateFault, _ result: String, again: String = "order it again"
    ) -> AdministrationRefusal {
        AdministrationRefusal(
            .insufficientStorage,
            "\(result), since the order cannot be saved: \(fault); make room or check the disk, and \(again)"
        )
    }

    /// Pauses a download once that is saved.
    func pause(_ download: Download) throws(StateFault) {
        let version = version(of: download, .pause)
        let state: Download.State = download.state.isActive ? .paused() : download.state
        try services.store.state.keep(
            [StateChange(download.record(in: state))] + Self.changes(version))
        pauseHere(download)
        tellNodes(version)
    }

    func pauseHere(_ download: Download) {
        proposals[download.id]?.verdict?(.cannotBeMet("it was paused meanwhile"))
        guard download.state.isActive else { return }
        download.stop(as: .paused())
        wake()
    }

    /// Resumes a download once that is saved.
    func resume(_ download: Download) throws(StateFault) {
        let version = try keep(download, isTold: true)
        resumeHere(download)
        tellNodes(version)
    }

    func resumeHere(_ download: Download) {
        switch download.state {
        case .paused, .failed:
            download.retryPause.reset()
            download.stop(as: .queued)
            download.renewFirst()
            wake()
        case .complete where mustDeferCheck(download), .presumedComplete where obstacle() != nil:
            download.state = .presumedComplete
            wake()
        case .complete, .presumedComplete:
            // Its stored playlists name what is missing.
            download.retryPause.reset()
            download.stop(as: .queued)
            wake()
        case .waiting(let reason, _):
            download.retryPause.reset()
            download.state = .waiting(reason)
            wake()
        default: break
        }
    }

    /// True for a complete download of an earlier run whose check an obstacle defers; it is shown
    /// as complete until then.
    ///
    /// It is saved as one that goes on, so that a restart does not forget the check.
    private func mustDeferCheck(_ download: Download) -> Bool {
        download.plan.pieces.isEmpty && obstacle() != nil
    }

    /// Removes a download once that is saved.
    ///
    /// Its bytes stay in the cache like those of any played title, and so does a pin from before the
    /// order.
    func cancel(_ download: Download) throws(StateFault) {
        let version = version(of: download, .cancel)
        try erase(download, Self.changes(version))
        forget(download)
        tellNodes(version)
    }

    /// Removes a download that another node has, or that was cancelled at another node.
    func remove(_ download: Download) {
        do throws(StateFault) {
            try erase(download, [])
        } catch {
            services.log.error(
                "the removal of a download cannot be saved",
                metadata: ["title": "\(download.id.text)", "error": "\(error)"])
            services.store.state.remove(DownloadRecord.self, key: download.record.key)
        }
        forget(download)
    }

    private func erase(_ download: Download, _ others: [StateChange]) throws(StateFault) {
        let removal = StateChange(removing: DownloadRecord.self, key: download.record.key)
        let changes = [removal] + others
        if download.isPinnedBefore { return try services.store.state.keep(changes) }
        try services.store.unpin(title: download.id.number, with: changes)
    }
}
