// What the proxy knows of a stored object besides its bytes; lives while the object is in memory.
package import CachePolicy
import HLS
package import HTTP
package import Posix
package import Routing
package import Store
import Synchronization

/// The decoded head of an object, its reuse rules and, for a playlist, the rewritten texts.
package final class ObjectFacts: Sendable {
    /// The decoded head.
    package let head: StoredHead
    /// The generation of the object.
    package let generation: UInt64
    /// When the head was requested and received; nil for one read back from the disk.
    package let times: SteadyTimes?
    /// When the origin sent the head, or last said that it is current.
    package var received: Moment { Moment(wall: head.responseTime, steady: times?.received) }
    /// The reuse rules of the head, for the kind of cache that stored it.
    package let rules: ReuseRules
    /// The entity tag of responses, which never changes for this object.
    package let entityTag: String
    /// True if its content type is that of a document or program.
    package let isDocument: Bool
    /// The store's count of losses at which everything that the playlist names was stored.
    private let lossesWhenWhole = Atomic<Int>(-1)
    private let textOfHLS = Mutex<Bool?>(nil)
    private let playlist = Mutex<[RewriteKey: KeptPlaylist]>([:])

    /// Field lines of responses, with what they depend on besides the stored head.
    private struct Lines: Sendable {
        let role: ResourceRole?
        let nameExtension: String
        let isMounted: Bool
        let written: SerializedFields
    }

    private let lines = Mutex<Lines?>(nil)

    package init(head: StoredHead, generation: UInt64, times: SteadyTimes? = nil) {
        self.head = head
        self.generation = generation
        self.times = times
        rules = ReuseRules(head, kind: head.kind ?? .private)
        isDocument = !head.followsHTTP && !head.isPlaylist && head.isDocument
        // Players resume with If-Range only if the strong tag is the same across restarts. The
        // generation is such a tag, where the origin gives none. In HTTP's own modes only the
        // origin may set a tag (RFC 9110 section 8.8.3).
        if head.followsHTTP {
            entityTag = EntityTag.parse(head.fields)?.description ?? ""
        } else if let given = EntityTag.strongText(head.fields) {
            entityTag = given
        } else {
            entityTag = "\"sluice-\(String(generation, radix: 16))\""
        }
    }

    /// True if everything that the playlist names is known to be stored.
    ///
    /// - Parameter losses: the store's current count of losses.
    /// - Returns: false if this was not checked since the last loss.
    package func isKeptWhole(losses: Int) -> Bool {
        lossesWhenWhole.load(ordering: .relaxed) == losses
    }

    /// Notes that everything that the playlist names was stored.
    ///
    /// - Parameter losses: the store's count of losses before the check.
    package func noteKeptWhole(losses: Int) {
        lossesWhenWhole.store(losses, ordering: .relaxed)
    }

    /// The time until which an inquiry whether the origins of missing resources answer is not
    /// repeated, in nanoseconds of the monotonic clock.
    private let originsAnsweredUntil = Atomic<Int64>(0)
    /// The store's count of losses at that inquiry: after a further loss, other origins may be
    /// needed.
    private let lossesWhenAnswered = Atomic<Int>(-1)
    /// Limits inquiries to two a second, however many players ask or repeat their requests.
    private static let answerLife = Interval.milliseconds(500)

    /// True if the origins of what the playlist lacks answered within the last half second.
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

    /// The validators that conditional requests are compared with; computed on each use, since few
    /// requests are conditional.
    package var validators: Validators {
        Validators(
            etag: EntityTag(entityTag),
            lastModified: head.fields.first(.lastModified).flatMap { HTTPDate.parse($0) },
            date: head.fields.first(.date).flatMap { HTTPDate.parse($0) }
                ?? head.responseTime.seconds)
    }

    /// True if the whole body is an HLS JSON text; nil until it has been examined.
    package var isTextOfHLS: Bool? {
        get { textOfHLS.withLock { $0 } }
        set { textOfHLS.withLock { $0 = newValue } }
    }

    /// Returns the facts of an object, decoded on first use; nil if its head cannot be decoded.
    package static func of(_ object: StoredObject) -> ObjectFacts? {
        if let known = object.attachment { return known as? ObjectFacts }
        guard let head = StoredHead(encoded: object.head) else { return nil }
        let made = ObjectFacts(head: head, generation: object.generation)
        return object.attach(made) as? ObjectFacts
    }

    /// Returns the constant field lines of responses for a resource, written once; nil if one of
    /// the origin's fields is malformed.
    package func lines(for resource: Resource, _ make: () -> SerializedFields?) -> SerializedFields?
    {
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

    /// True if it is a multivariant playlist; nil until its body was examined.
    let isMultivariant = Mutex<Bool?>(nil)

    /// True if the origin marked this as made for one viewer (`private` or `no-store`).
    package var isPerViewer: Bool {
        let control = CacheControl(head.fields)
        return control.private != nil || control.noStore
    }

    /// True if the origin may have made this for one client; another request of the same session
    /// may come from another client.
    package var isOfOneClient: Bool {
        let control = CacheControl(head.fields)
        return control.private == .response || control.noStore
            || SelectingFields(head.fields).tellsClientsApart
    }

    /// What a rewritten playlist depends on besides the stored bytes.
    package struct RewriteKey: Hashable, Sendable {
        package let session: SessionID
        /// The prefix of each written URL: origin and base path.
        package let prefix: String
        /// The list that link paths name, if it is not the served one.
        package var list: ObjectKey?
        /// The form that the origin's text was brought into before its URIs were rewritten.
        package var form = PlaylistForm.origin
        /// Scheme, host and base path of its absolute URLs, if texts for several hosts are kept.
        package var host: String?
        /// True for the gzip form.
        package var isCompressed = false
        /// The number of the cluster's key that its links are sealed and signed with; 0 without.
        package let sealKey: UInt32
        /// The text of the cookies that its links carry; nil for none.
        package let cookies: String?
        /// The version of the settings that decide which links lead beyond the kept head.
        package let settings: UInt64
        /// A digest of the user information of a mount that its links are signed with; nil for
        /// none.
        package let user: String?

        package init(
            session: SessionID, prefix: String, list: ObjectKey? = nil, sealKey: UInt32 = 0,
            cookies: String? = nil, settings: UInt64 = 0, user: String? = nil
        ) {
            self.session = session
            self.prefix = prefix
            self.list = list
            self.sealKey = sealKey
            self.cookies = cookies
            self.settings = settings
            self.user = user
        }
    }

    /// Returns a rewritten playlist held in memory.
    package func prepared(_ key: RewriteKey) -> PreparedPlaylist? {
        playlist.withLock { $0[key]?.playlist }
    }

    /// True if a rewritten playlist of a session is held in memory.
    package func isPrepared(for session: SessionID) -> Bool {
        playlist.withLock { $0.keys.contains { $0.session == session } }
    }

    /// Replaces these facts of an object by new ones without rewritten texts.
    ///
    /// Repeated hits hold the former facts and notice that these are out of use; a text that is
    /// being made is kept with the former facts, where nothing finds it.
    package func forgetTexts(of object: StoredObject) {
        object.replaceAttachment(
            self, with: ObjectFacts(head: head, generation: generation, times: times))
    }

    /// Returns the prepared text of a key; nil if short names in it may have been deleted since.
    package func prepared(_ key: RewriteKey, names: UInt64) -> PreparedPlaylist? {
        prepared(key).flatMap { $0.names == names ? $0 : nil }
    }

    /// Returns the prepared text of a key; nil if it contains URLs with another host than `own`, or
    /// if short names in it may have been deleted since.
    ///
    /// The few texts with a host are kept per host; `key` is then changed to the one to keep a new
    /// text under.
    package func prepared(
        _ key: inout RewriteKey, names: UInt64, own: @autoclosure () -> String
    ) -> PreparedPlaylist? {
        guard let known = prepared(key) else { return nil }
        if let host = known.host {
            let own = own()
            if host != own {
                key.host = own
                return prepared(key, names: names)
            }
        }
        return known.names == names ? known : nil
    }

    /// Keeps a rewritten playlist: at most eight per object, so that many viewers of one list do
    /// not accumulate copies, and none if the budget of all objects is used up.
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
    /// Scheme, host and base path of its absolute URLs besides relative ones; nil where the key
    /// determines the text.
    package var host: String?
    /// The store's `longURLVersion` before its links were written.
    package var names: UInt64

    package init(
        bytes: [UInt8], facts: PlaylistFacts, form: PlaylistForm, host: String? = nil,
        names: UInt64 = 0
    ) {
        self.bytes = bytes
        self.facts = facts
        self.form = form
        self.host = host
        self.names = names
    }
}

/// A playlist that counts against the budget while it is held.
package final class KeptPlaylist: Sendable {
    package let playlist: PreparedPlaylist
    private let budget: RewrittenBudget

    fileprivate init(_ playlist: PreparedPlaylist, _ budget: RewrittenBudget) {
        self.playlist = playlist
        self.budget = budget
    }

    deinit { budget.giveBack(playlist.bytes.count) }
}

/// A memory limit for rewritten playlists.
package final class RewrittenBudget: Sendable {
    private let limit: Int
    private let used = Atomic<Int>(0)

    package init(limit: Int) {
        self.limit = limit
    }

    /// Returns the playlist, counted against the budget; nil if it would exceed the limit.
    package func admit(_ playlist: PreparedPlaylist) -> KeptPlaylist? {
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
