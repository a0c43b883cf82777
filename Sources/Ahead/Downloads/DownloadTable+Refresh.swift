// Refreshes of complete downloads: their beginning, and what becomes of the former version.
import CachePolicy
import HTTP
import Library
import Logging
import Model
import Posix
import Reactor
import Routing
import Store

extension DownloadTable {
    /// Begins to refresh a complete download, unless that is under way.
    ///
    /// - Parameter known: the download, which stays as it is until the new version is whole.
    /// - Throws: a refusal if it is not complete, or its origin may not be asked now.
    func refresh(_ known: Download) throws(AdministrationRefusal) {
        guard refreshes[known.id] == nil else { return }
        guard known.state.isComplete else {
            throw AdministrationRefusal(
                .conflict,
                "\(known.name) is not complete: only a complete download is refreshed")
        }
        let entry = services.names.resource(
            known.order.url, known.session, role: nil, forwarding: Fields())
        let isOffline = entry.policy == .offline
        if let reason = isOffline ? "the policy of its origin is offline" : self.obstacle() {
            throw AdministrationRefusal(
                .conflict, "\(known.name) is left as it was: \(reason)")
        }
        let download = Download(known.order, id: known.id, session: known.session, table: self)
        download.name = known.name
        download.kept = known.kept
        download.isPinnedBefore = known.isPinnedBefore
        download.refresh = .fetching
        refreshes[known.id] = download
        wake()
    }

    /// Ends the refresh of a complete download, as its user wishes: the stored version stays.
    ///
    /// - Returns: false if none runs, or if it stores its playlists already.
    func stopRefresh(of known: Download) -> Bool {
        guard known.state.isComplete, let download = refreshes[known.id],
            !download.isStoringPlaylists
        else { return false }
        failRefresh(download, "it was stopped")
        return true
    }

    /// Ends a refresh that has failed: the former version stays, and what was fetched of the new
    /// one need not be fetched again.
    func failRefresh(_ download: Download, _ reason: String) {
        guard refreshes[download.id] === download else { return }
        dropRefresh(of: download.id)
        wake()
        guard let known = downloads[download.id], known.state.isComplete else { return }
        restorePlaylists(of: download)
        services.log.warning(
            "a download could not be refreshed",
            metadata: ["title": "\(known.id.text)", "reason": "\(reason)"])
        known.lastRefresh = Download.LastRefresh(
            endingAt: loop.wallNow, after: known.lastRefresh, failure: reason)
        save(known)
        // A body that states no length takes the place of the stored one before it is whole.
        note(removedFrom: [known.id.number])
    }

    /// Replaces a complete download by its refresh, which is whole.
    func finishRefresh(_ download: Download) {
        guard refreshes[download.id] === download, let known = downloads[download.id],
            !known.state.isActive
        else { return dropRefresh(of: download.id) }
        refreshes[download.id] = nil
        download.refresh = nil
        download.formerKeys = known.formerKeys
        download.formerPlaylists = []
        // An order of another node may have come meanwhile.
        download.carriedOut = known.carriedOut
        download.lastRefresh = Download.LastRefresh(
            endingAt: loop.wallNow, after: known.lastRefresh, failure: nil)
        replace(known, by: download)
        // Saves it.
        download.end(as: .complete)
        removeFormer(of: download)
        finished(download)
    }

    /// Ends a refresh whose download is gone, has changed, or goes on itself.
    func dropRefresh(of id: SessionID) {
        guard let download = refreshes.removeValue(forKey: id) else { return }
        download.stop(as: .paused())
    }

    /// Stores the former playlists again that a refresh has replaced before it failed: a mixture of
    /// two versions would play parts of both.
    ///
    /// Blocks on the disk.
    private func restorePlaylists(of download: Download) {
        for former in download.formerPlaylists {
            // What a purge has removed meanwhile stays removed.
            guard let present = services.store.peek(former.key), present !== former else {
                continue
            }
            do throws(SystemError) {
                let body = try readBody(of: former, count: Int(former.total ?? 0))
                try services.store.store(
                    body,
                    as: ObjectDescription(
                        key: former.key, url: former.url, role: former.role, head: former.head,
                        total: Int64(body.count), created: former.created, isStorable: true,
                        title: former.title, kind: former.kind))
            } catch {
                services.log.error(
                    "a playlist of a download's stored version cannot be stored again",
                    metadata: ["title": "\(download.id.text)", "error": "\(error)"])
            }
        }
    }

    /// Saves the keys of the objects that either the stored version or the one that a refresh
    /// fetches names: whichever of the two stays, the title's pin would hold the others for ever.
    ///
    /// To be called before anything of the new version is stored, so that a later run knows it too.
    func keepFormer(of download: Download) {
        guard !download.isPinnedBefore, let known = downloads[download.id] else { return }
        let named = download.newPlaylists.union(pieceKeys(of: download) + download.playlists)
        let former = known.formerKeys.union(
            named.symmetricDifference(pinnedKeys(of: download)))
        guard former != known.formerKeys else { return }
        known.formerKeys = former
        save(known)
    }

    /// Removes the title's objects that only other versions than the stored one had.
    ///
    /// Those that another pin names stay, and all of a title that was pinned before its order.
    /// Blocks on the disk.
    private func removeFormer(of download: Download) {
        guard !download.formerKeys.isEmpty else { return }
        if !download.isPinnedBefore {
            let namings = services.store.namingsNow
            let former = download.formerKeys.subtracting(pinnedKeys(of: download))
            for key in former where namings(key) == 0 {
                guard let object = services.store.peek(key), object.title == download.id.number
                else { continue }
                services.store.remove(object)
            }
        }
        // Last: what a crash leaves here, the next refresh removes.
        download.formerKeys = []
        save(download)
    }
}
