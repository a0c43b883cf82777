import CachePolicy
import HLS
import HTTP
import Library
import Model
import Playlists
import Reactor
import Routing
import Upstream
import URISyntax

/// Planning of a download: reads the entry, then the playlists that the order selects.
extension Download {
    /// Reads the playlists and plans the pieces.
    package func start() {
        beginPlan()
        toRead = []
        playlists = []
        isNoFile = false
        unconfirmed = []
        newPlaylists = []
        // A dry run or a refresh is not repeated after a crash.
        if !isDryRun, refresh == nil { table.services.crashes.begins(.download, id.text) }
        table.save(self)
        switch Self.kind(byName: order.url) {
        case .file: beginFile()
        case .playlist: readEntry()
        // Requesting it as a playlist would fetch part of a file if it is not one. A dry run, which
        // fetches no part of a file, can tell only by that request.
        case .unknown:
            let isPlaylist =
                table.holdsPlaylist(self) || isDryRun && !table.holdsEntry(of: self)
            isPlaylist ? readEntry() : beginFile()
        }
    }

    /// Begins a plan: what is known of pieces is by their index in the former one.
    private func beginPlan() {
        run += 1
        state = .planning
        plan = DownloadPlan()
        pending = []
        present = [:]
        refused = [:]
        portalPages = PortalPages()
        isFirstPart = false
    }

    // MARK: Renewal

    /// Decides whether the playlists are read again past the cache after a refusal, since those in
    /// the store may name expired URLs.
    ///
    /// - Parameters:
    ///   - status: the origin's status; nil if it did not answer.
    ///   - index: the refused piece; nil for a playlist.
    /// - Returns: true if they are read again before the next piece is fetched.
    @discardableResult
    func renew(after status: HTTPStatus?, of index: Int?) -> Bool {
        // No playlist names a file.
        if let index, plan.pieces[index].role == nil { return false }
        guard !renewsPlaylists, refresh == nil else { return false }
        renewsPlaylists = renewal.begins(
            after: status, of: index, stored: present.count, now: table.loop.now)
        return renewsPlaylists
    }

    /// Reads the playlists past the cache before the next piece is fetched.
    func renewFirst() {
        renewsPlaylists = true
        renewal = PlaylistRenewal()
        renewal.begin(stored: 0, now: table.loop.now)
    }

    /// Plans anew once no piece is in flight; stored pieces are looked up in the store.
    func planAnew() {
        // Not before: what was in flight at the refusal is no progress of the next reading.
        renewal.begin(stored: present.count, refused: Set(refused.keys), now: table.loop.now)
        keepSummary()
        start()
    }

    // MARK: Reading

    private func readEntry() {
        read(order.url, variables: [:]) { download, playlist in download.planned(playlist) }
    }

    /// Plans again from a playlist that was first taken for a file.
    func turnIntoPlaylist() {
        beginPlan()
        isNoFile = true
        readEntry()
    }

    /// The kind of an entry, judged by its name.
    private enum NamedKind {
        case file
        case playlist
        case unknown
    }

    private static let fileExtensions: Set = [
        "mp4", "m4v", "m4a", "mov", "mkv", "webm", "mp3", "aac", "ts", "flac", "wav",
    ]

    private static func kind(byName url: AbsoluteURL) -> NamedKind {
        let name = url.lastPathSegment
        guard let dot = name.lastIndex(of: ".") else { return .unknown }
        let suffix = ASCII.lowercased(String(name[name.index(after: dot)...]))
        if fileExtensions.contains(suffix) { return .file }
        return ["m3u8", "m3u"].contains(suffix) ? .playlist : .unknown
    }

    /// Reads a playlist from the store while it is fresh.
    ///
    /// During a renewal it is read past the cache, and from the store only if that fails. During a
    /// refresh the origin is always asked, whether the stored one is its present version.
    private func read(
        _ url: AbsoluteURL, variables: [String: String], takesFresh: Bool = false,
        _ then: @escaping @Sendable (Download, FetchedPlaylist) -> Void
    ) {
        let takesFresh = refresh == nil && (takesFresh || !renewsPlaylists)
        var wanted = FetchedPlaylist.Request(
            url: url, session: session, variables: variables, lane: .background,
            takesFresh: takesFresh, wantsCookies: !takesFresh && refresh == nil)
        wanted.needsOrigin = refresh != nil
        wanted.mayStore = refresh != .fetching
        let bound = LoopBound(self, to: table.loop)
        table.services.playlists.read(wanted) { [run] result in
            bound.enqueue { download, _ in
                guard download.run == run, download.state == .planning else { return }
                switch result {
                case .success(let playlist): download.take(playlist, then)
                case .failure where !takesFresh && download.refresh == nil:
                    download.read(url, variables: variables, takesFresh: true, then)
                case .failure(let failure): download.planningFailed(failure)
                }
            }
        }
    }

    /// Plans from a playlist; waits if the store has no room for it.
    ///
    /// One that its origin forbids to store is used for planning only.
    private func take(
        _ playlist: FetchedPlaylist, _ then: (Download, FetchedPlaylist) -> Void
    ) {
        // A lack of room delays an order; it does not decide whether a proposed one can be met.
        let lacksRoom = playlist.notStored?.mayPass == true
        if lacksRoom, verdict == nil { return wait(for: ProxyFailure.noRoom.message) }
        if playlist.notStored == nil || lacksRoom {
            playlists.append(playlist.resource.key)
        }
        if isNew(playlist) { newPlaylists.insert(playlist.resource.key) }
        then(self, playlist)
    }

    private func planningFailed(_ failure: ProxyFailure) {
        if refresh != nil { return fail(failure.message) }
        // A captive portal may end by itself, and a page is no file under the name of a playlist.
        if failure.isPage { return wait(after: failure) }
        if failure.fault == .origin, failure.originStatus == .ok, toRead.isEmpty, !isNoFile {
            // A response, but not a playlist: a file.
            return beginFile()
        }
        if !toRead.isEmpty, renew(after: failure.originStatus, of: nil) { return start() }
        guard failure.isWorthRetrying else { return fail(failure.message) }
        wait(after: failure)
    }

    /// Returns the reason why a part is not fetched and, where `resume` cannot help, what the user
    /// can do instead.
    func refusal(_ failure: ProxyFailure) -> Refusal {
        guard failure.isUnproven else {
            return Refusal(reason: failure.message, status: failure.originStatus)
        }
        let wayOut = order.from == nil ? "" : "; order the title from its start on, without --from"
        return Refusal(reason: failure.message + wayOut, isUnproven: true)
    }

    private func planned(_ playlist: FetchedPlaylist) {
        guard let multivariant = playlist.list.multivariant else {
            return add(playlist, label: "stream", bandwidth: nil) { $0.begin() }
        }
        if let announced = TitleName.announced(in: playlist.list) { name = announced }
        do throws(DownloadChoice.Fault) {
            toRead = try DownloadChoice(order, multivariant).playlists()
        } catch {
            return fail(error.message)
        }
        readNext(variables: playlist.list.definedVariables)
    }

    private func readNext(variables: [String: String]) {
        guard let next = toRead.first else { return begin() }
        read(next.url, variables: variables) { download, playlist in
            download.add(playlist, label: next.label, bandwidth: next.bandwidth) { download in
                download.toRead.removeFirst()
                download.readNext(variables: variables)
            }
        }
    }

    private func add(
        _ playlist: FetchedPlaylist, label: String, bandwidth: Int?, _ then: (Download) -> Void
    ) {
        guard let media = playlist.list.media else {
            return fail(
                "the origin's multivariant playlist names another one in place of a media playlist")
        }
        guard !playlist.list.summary.isLive else {
            return fail(
                "this is a live stream, which has no end to download to; keep it with `sluice record`"
            )
        }
        plan.add(media, label: label, bandwidth: bandwidth, from: order.from, to: order.to)
        if isNew(playlist) { noteUnconfirmed(media) }
        then(self)
    }
}

extension Download {
    /// Whether a proposed order can be met.
    package enum Verdict: Sendable {
        case canBeMet
        case cannotBeMet(String)
        /// The origin does not respond.
        case undecided(String)
    }
}
