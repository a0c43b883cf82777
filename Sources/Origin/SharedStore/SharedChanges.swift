// Purges and pins of other nodes: looked for in the store's listing, and repeated here in their
// order.
import BucketClient
import CachePolicy
import HTTP
import Logging
import Model
import Posix
import Reactor
import Routing
import SharedStore
import Store
import URISyntax

/// The changes that all nodes follow; lives on the upstream loop.
final class SharedChanges {
    private unowned let level: SharedLevel
    private let keys: KeyTable
    private let node: NodeChanges
    private var handler: NodeChanges.Handler?
    /// True once a listing was read, or has failed.
    private var hasListed = false
    private var hasCaughtUp: (@Sendable () -> Void)?
    private var known: Set<String> = []
    /// Names of changes that were made here and that no listing has shown yet.
    private var unlisted: Set<String> = []
    private var pins = LatestPins(most: most)
    private var listing = RuleListing(most: most)
    private var pending: [SharedChange] = []
    /// The names of those in `pending` that were made here.
    private var own: Set<String> = []
    private var isApplying = false
    private var pause = shortestPause
    private var marks: [(mark: Marked, given: WallTime)] = []

    private enum Marked {
        case texts(Set<String>)
        case host(PurgeHost)
        case prefixes(Set<PurgePrefix>)
        case title(SessionID)
    }

    /// The most changes that are followed; the oldest are dropped first.
    private static let most = 10_000
    /// Time until a change that was refused is repeated, since too many purges may wait; it doubles
    /// with each refusal, since the disk may be broken.
    private static let shortestPause = Interval.milliseconds(300)
    private static let longestPause = Interval.seconds(60 as Int64)

    init(_ level: SharedLevel, keys: KeyTable, node: NodeChanges) {
        self.level = level
        self.keys = keys
        self.node = node
        for change in node.restored() { publish(change, isRestored: true) }
    }

    /// Begins to look for changes.
    ///
    /// - Parameters:
    ///   - handler: makes them here.
    ///   - caughtUp: called once the first listing has failed, or all that it shows is made.
    func follow(
        _ handler: @escaping NodeChanges.Handler, caughtUp: @escaping @Sendable () -> Void
    ) {
        self.handler = handler
        hasCaughtUp = caughtUp
        poll()
    }

    /// True if a purge concerns an object that came from its origin at this time.
    func forbids(_ resource: Resource, receivedAt time: WallTime) -> Bool {
        marks.contains { mark, given in
            guard time <= given else { return false }
            return switch mark {
            case .texts(let texts): texts.contains(resource.cacheKey.url)
            case .host(let host): host.matches(resource.cacheKey.url)
            case .prefixes(let prefixes):
                prefixes.contains { $0.matches(resource.cacheKey.url) }
            case .title(let title): title == resource.session.id
            }
        }
    }

    // MARK: Giving

    /// Writes a change that was made here and is saved.
    ///
    /// With `isRestored`, an earlier run made it: a pin or unpin is made again, in its order among
    /// those that the listing shows.
    func publish(_ change: SharedChange, isRestored: Bool = false) {
        if change.isPurge || !isRestored {
            known.insert(change.name)
            unlisted.insert(change.name)
        }
        _ = isLatest(change)
        note(change)
        write(change, attempt: 1)
        guard change.mark != nil else { return }
        // A former version may have come from the store between the purge and this mark.
        own.insert(change.name)
        pending.append(change)
        applyNext()
    }

    private func write(_ change: SharedChange, attempt: Int64) {
        let text = change.text
        _ = level.bucket.put(change.name, text, hash: "UNSIGNED-PAYLOAD") { [weak self] result in
            guard let self else { return }
            guard case .failure(let failure) = result else {
                return node.wrote(change)
            }
            level.log.warning(
                "a purge or pin did not reach the shared store; it is tried again",
                metadata: ["reason": "\(failure)"])
            level.loop.schedule(after: .seconds(min(60, attempt * 2))) { [weak self] _ in
                guard let self, !level.isShutDown else { return }
                write(change, attempt: attempt + 1)
            }
        }
        guard attempt == 1, case .url(let text)? = change.mark else { return }
        for name in names(ofURL: text) { level.bucket.delete(name) { _ in } }
    }

    private func texts(ofURL text: String) -> Set<String> {
        (try? AbsoluteURL(text)).map { keys.texts(of: $0) } ?? []
    }

    private func names(ofURL text: String) -> [String] {
        texts(ofURL: text).map { SharedNames.object(ObjectKey(sha256Of: $0).hex) }
    }

    /// False for a pin or unpin of a title that a later one concerns.
    private func isLatest(_ change: SharedChange) -> Bool {
        guard !change.isPurge else { return true }
        let text = QueryItem.items(of: change.query).first?.value() ?? ""
        return pins.note(change.name, of: Self.title(text)?.text ?? text)
    }

    private static func title(_ text: String) -> SessionID? {
        SessionID(text: text)
            ?? (try? AbsoluteURL(text)).map { SessionTable.unkept(for: Entry(url: $0)).id }
    }

    private func note(_ change: SharedChange) {
        node.note(change)
        level.forgetHeaders()
        guard let mark = change.mark.flatMap(marked) else { return }
        marks.append((mark, change.given))
        if marks.count > Self.most { marks.removeFirst(marks.count - Self.most) }
    }

    /// Nil for a text of another version that names nothing here.
    private func marked(_ mark: SharedChange.Mark) -> Marked? {
        switch mark {
        case .url(let text): .texts(texts(ofURL: text))
        case .host(let text): PurgeHost(text).map { .host($0) }
        case .prefix(let text):
            (try? AbsoluteURL(text)).map { .prefixes(PurgePrefix.all(of: $0, keys)) }
        case .title(let text):
            // Only what was fetched without a viewer's headers is shared.
            Self.title(text).map { .title($0) }
        }
    }

    // MARK: Following

    private func poll() {
        guard !level.isShutDown else { return }
        guard level.isUp else { return pollLater() }
        listing.begin(now: level.loop.now)
        list(from: nil)
    }

    private func pollLater() {
        hasListed = true
        applyNext()
        level.loop.schedule(after: level.settings.pollInterval) { [weak self] _ in self?.poll() }
    }

    private func list(from token: String?) {
        level.bucket.list(SharedNames.rules, from: token, after: listing.start) {
            [weak self] result in
            guard let self, !level.isShutDown else { return }
            let page: BucketListing
            switch result {
            case .success(let listed): page = listed
            case .failure(let failure):
                level.report.note(.changes, failure, log: level.log)
                listing.fail()
                return pollLater()
            }
            let start = level.settings.location.prefix
            let names = page.objects.map(\.name).filter { $0.hasPrefix(start) }
            let goesOn = listing.add(names.map { String($0.dropFirst(start.count)) })
            if goesOn, let next = page.next, next != token { return list(from: next) }
            take(listing.end(now: level.loop.now, wall: level.loop.wallNow))
        }
    }

    /// Takes the latest names of a listing, sorted.
    private func take(_ listed: [String]) {
        let unread = listed.filter { !known.contains($0) }
        unlisted.subtract(listed)
        let kept = unlisted.union(listed)
        let start = listing.start ?? ""
        // What has expired in the bucket need not be remembered.
        known = known.filter { $0 <= start || kept.contains($0) }
        read(unread)
    }

    private func read(_ names: [String]) {
        var found: [SharedChange] = []
        var failed: String?
        var reason: BucketFailure?
        SmallReads.read(names, from: level) { [self] name, result in
            switch result {
            case .success(let reply):
                if let change = SharedChange(name: name, text: reply.body) {
                    found.append(change)
                } else {
                    known.insert(name)
                }
            // One object that cannot be read, for example an archived or too long one, does not
            // hold up the others; the next listing tries it again. So does a 404: a replica may not
            // have the object yet, and a deleted object leaves the listing.
            case .failure(let failure) where failure.isOfObject: break
            case .failure(let failure):
                failed = min(name, failed ?? name)
                reason = failure
                return false
            }
            return true
        } done: { [self] in
            level.report.note(.changes, reason, log: level.log)
            // A listing that starts later would not show what was not read.
            if failed != nil { listing.fail() }
            // In their order: what was given later waits for one that is read again.
            for change in found.sorted(by: { $0.name < $1.name }) {
                if let failed, change.name > failed { break }
                known.insert(change.name)
                guard isLatest(change) else { continue }
                note(change)
                pending.append(change)
            }
            pollLater()
        }
    }

    private func applyNext() {
        guard !isApplying, let handler, let first = pending.first else {
            if !isApplying, hasListed { caughtUp() }
            return
        }
        isApplying = true
        let batch = first.isPurge ? Array(pending.prefix(while: \.isPurge)) : [first]
        let bound = LoopBound(self, to: level.loop)
        handler(batch) { isOver in
            bound.enqueue { changes, loop in
                guard !changes.level.isShutDown else { return }
                guard isOver else {
                    // `isApplying` stays true until then, or each listing would begin further
                    // attempts.
                    loop.schedule(after: changes.pause) { [weak changes] _ in
                        changes?.isApplying = false
                        changes?.applyNext()
                    }
                    changes.pause = min(
                        Self.longestPause, Interval(nanoseconds: changes.pause.nanoseconds * 2))
                    return
                }
                changes.isApplying = false
                changes.pause = Self.shortestPause
                changes.pending.removeFirst(batch.count)
                for change in batch where changes.own.remove(change.name) == nil {
                    changes.level.counters.add(.sharedChanges)
                }
                changes.applyNext()
            }
        }
    }

    private func caughtUp() {
        hasCaughtUp?()
        hasCaughtUp = nil
    }
}
