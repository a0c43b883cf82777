// What the proxy knows of a stored object beside its bytes; lives as long as it is in memory.
package import CachePolicy
import HLS
package import HTTP
package import Posix
package import Routing
package import Store
import Synchronization

/// The decoded head of an object, its readers, and, for a playlist, what was read out of it.
package final class ObjectFacts: Sendable {
    /// The head as it was decoded.
    package let head: StoredHead
    /// Of the object.
    package let generation: UInt64
    /// When the head was asked for and came; nil for one that was read back from the disk.
    package let times: SteadyTimes?
    /// What the head says about reuse, by the kind of cache that it was stored by.
    package let rules: ReuseRules
    /// Parts of response heads that never change for this object.
    package let entityTag: String
    /// Whether the origin calls it a document or program.
    package let isDocument: Bool
    /// The store's count of losses at which everything that the playlist names was stored.
    private let lossesWhenWhole = Atomic<Int>(-1)
    private let textOfHLS = Mutex<Bool?>(nil)
    private let playlist = Mutex<[RewriteKey: KeptPlaylist]>([:])

    /// Field lines of answers, with what they depend on beside the stored head.
    private struct Lines: Sendable {
        let role: ResourceRole?
        let nameExtension: String
        let isMounted: Bool
        let written: WrittenFields
    }

    private let lines = Mutex<Lines?>(nil)

    package init(head: StoredHead, generation: UInt64, times: SteadyTimes? = nil) {
        self.head = head
        self.generation = generation
        self.times = times
        rules = ReuseRules(head, kind: head.kind ?? .private)
        isDocument = head.kind == nil && !head.isPlaylist && head.isDocument
        // Players resume with If-Range only on a strong tag that stays the same across restarts;
        // the generation is one, where the origin gives none. Under HTTP's rules a tag is the
        // origin's to give (RFC 9110 section 8.8.3).
        if head.kind != nil {
            entityTag = EntityTag.parse(head.fields)?.description ?? ""
        } else if let given = EntityTag.strongText(head.fields) {
            entityTag = given
        } else {
            entityTag = "\"sluice-\(String(generation, radix: 16))\""
        }
    }

    /// Whether everything that the playlist names is known to be stored.
    ///
    /// - Parameter losses: the store's count of them now.
    /// - Returns: false where nobody has looked since the last loss.
    package func isKeptWhole(losses: Int) -> Bool {
        lossesWhenWhole.load(ordering: .relaxed) == losses
    }

    /// Notes that everything that the playlist names was stored.
    ///
    /// - Parameter losses: the store's count of them before that was found out.
    package func noteKeptWhole(losses: Int) {
        lossesWhenWhole.store(losses, ordering: .relaxed)
    }

    /// Until when an inquiry's answer about the origins of what a playlist lacks is believed, in
    /// nanoseconds of the monotonic clock.
    private let originsAnsweredUntil = Atomic<Int64>(0)
    /// The store's count of losses then: what the playlist lacks may have other origins since.
    private let lossesWhenAnswered = Atomic<Int>(-1)
    /// A crowd of players, or one that asks again, causes two inquiries a second at the most.
    private static let answerLife = Interval.milliseconds(500)

    /// Whether the origins of what the playlist lacks answered a moment ago.
    package func haveOriginsAnswered(now: Monotonic, losses: Int) -> Bool {
        now.nanoseconds < originsAnsweredUntil.load(ordering: .relaxed)
            && lossesWhenAnswered.load(ordering: .relaxed) == losses
    }

    /// Notes that the origins of what the playlist lacks have just answered.
    ///
    /// - Parameters:
    ///   - now: the time of their answers.
    ///   - losses: the store's count of losses before they were asked.
    package func noteOriginsAnswered(now: Monotonic, losses: Int) {
        lossesWhenAnswered.store(losses, ordering: .relaxed)
        originsAnsweredUntil.store((now + Self.answerLife).nanoseconds, ordering: .relaxed)
    }

    /// What conditions of requests are compared with; made each time, since hardly a request has any.
    package var validators: Validators {
        Validators(
            etag: EntityTag(entityTag),
            lastModified: head.fields.first(.lastModified).flatMap { HTTPDate.parse($0) },
            date: head.fields.first(.date).flatMap { HTTPDate.parse($0) }
                ?? head.responseTime.seconds)
    }

    /// Whether the whole body is a JSON text of HLS; nil until it has been looked at.
    package var isTextOfHLS: Bool? {
        get { textOfHLS.withLock { $0 } }
        set { textOfHLS.withLock { $0 = newValue } }
    }

    /// The facts of an object, decoded on first use; nil if its head is not one of ours.
    package static func of(_ object: StoredObject) -> ObjectFacts? {
        if let known = object.attachment { return known as? ObjectFacts }
        guard let head = StoredHead(encoded: object.head) else { return nil }
        let made = ObjectFacts(head: head, generation: object.generation)
        return object.attach(made) as? ObjectFacts
    }

    /// The lasting field lines of answers for a resource, written once; nil where a field of the
    /// origin's is ill-formed.
    package func lines(for resource: Resource, _ make: () -> WrittenFields?) -> WrittenFields? {
        let known = lines.withLock { $0 }
        if let known, known.role == resource.role, known.isMounted == resource.isMounted,
            known.nameExtension == resource.nameExtension
        {
            return known.written
        }
        guard let written = make() else { return nil }
        let made = Lines(
            role: resource.role, nameExtension: resource.nameExtension,
            isMounted: resource.isMounted, written: written)
        lines.withLock { $0 = made }
        return written
    }

    // MARK: Playlists

    /// Whether the origin marked this as made for one viewer.
    package var isOneViewers: Bool {
        let control = CacheControl(head.fields)
        return control.private != nil || control.noStore
    }

    /// What a rewritten playlist depends on beside the stored bytes.
    package struct RewriteKey: Hashable, Sendable {
        package let session: SessionID
        /// What stands before each written URL: origin and base path.
        package let prefix: String
        /// The list that the paths of links name, where it is not the one that is served.
        package var list: ObjectKey?
        /// What was made of the origin's text before its URIs were rewritten.
        package var form = PlaylistForm.origin
        /// Scheme, host and base path of the absolute URLs in it, where texts for several hosts are
        /// kept.
        package var host: String?
        /// Whether this is the gzip form.
        package var isCompressed = false

        package init(
            session: SessionID, prefix: String, list: ObjectKey? = nil,
            form: PlaylistForm = PlaylistForm.origin, host: String? = nil,
            isCompressed: Bool = false
        ) {
            self.session = session
            self.prefix = prefix
            self.list = list
            self.form = form
            self.host = host
            self.isCompressed = isCompressed
        }
    }

    /// A rewritten playlist held in memory.
    package func prepared(_ key: RewriteKey) -> PreparedPlaylist? {
        playlist.withLock { $0[key]?.playlist }
    }

    /// Whether a rewritten playlist of a session is held in memory.
    package func isPrepared(for session: SessionID) -> Bool {
        playlist.withLock { $0.keys.contains { $0.session == session } }
    }

    /// The prepared text of a key; nil where it holds URLs with another host than `own`.
    ///
    /// Those few texts are kept by host; `key` is then the one to keep a new text under.
    package func prepared(_ key: inout RewriteKey, own: @autoclosure () -> String)
        -> PreparedPlaylist?
    {
        guard let known = prepared(key) else { return nil }
        guard let host = known.host else { return known }
        let own = own()
        if host == own { return known }
        key.host = own
        return prepared(key)
    }

    /// Keeps a rewritten playlist; at most eight sessions an object, so that many viewers of one
    /// list do not pile up copies, and none where the budget of all objects is used up.
    package func keep(_ made: PreparedPlaylist, for key: RewriteKey, within budget: RewrittenBudget)
    {
        guard let kept = budget.admit(made) else { return }
        playlist.withLock { table in
            if table.count >= 8 { table.removeAll(keepingCapacity: true) }
            table[key] = kept
        }
    }
}

/// A playlist ready for one session.
package struct PreparedPlaylist: Sendable {
    package let bytes: [UInt8]
    package let facts: PlaylistFacts
    package let form: PlaylistForm
    /// Scheme, host and base path of the absolute URLs that it holds beside relative ones; nil
    /// where the key tells all.
    package var host: String?

    package init(bytes: [UInt8], facts: PlaylistFacts, form: PlaylistForm, host: String? = nil) {
        self.bytes = bytes
        self.facts = facts
        self.form = form
        self.host = host
    }
}

/// A playlist that counts against the budget for as long as it is held.
package final class KeptPlaylist: Sendable {
    package let playlist: PreparedPlaylist
    private let budget: RewrittenBudget

    fileprivate init(_ playlist: PreparedPlaylist, _ budget: RewrittenBudget) {
        self.playlist = playlist
        self.budget = budget
    }

    deinit { budget.giveBack(playlist.bytes.count) }
}

/// The memory that rewritten playlists of all objects may take.
package final class RewrittenBudget: Sendable {
    private let limit: Int
    private let used = Atomic<Int>(0)

    package init(limit: Int) {
        self.limit = limit
    }

    /// The playlist, counted; nil where there is no room.
    func admit(_ playlist: PreparedPlaylist) -> KeptPlaylist? {
        let size = playlist.bytes.count
        guard used.add(size, ordering: .relaxed).newValue <= limit else {
            giveBack(size)
            return nil
        }
        return KeptPlaylist(playlist, self)
    }

    fileprivate func giveBack(_ size: Int) {
        used.subtract(size, ordering: .relaxed)
    }
}
