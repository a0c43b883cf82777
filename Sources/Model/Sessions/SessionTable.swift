// The sessions that the daemon keeps, in memory and across restarts.
package import DurableState
import HLS
import HTTP
package import Routing
import Synchronization
package import URISyntax

/// Sessions with headers, kept across restarts: the ones last used, and those that are needed.
///
/// Each new set of headers makes a session, so their number is bounded: beyond it, the sessions
/// unused longest are dropped, except those that a pin, recording, download, live window or running
/// request needs. A player that still has links of such a session is answered as in one without
/// headers; its entry URL makes the session anew.
///
/// Any thread may use it.
package final class SessionTable: Sendable {
    /// The limits of what is kept besides the sessions that are needed.
    package struct Limits: Sendable {
        package var sessions = 10_000
        /// The memory that sessions take, headers included.
        package var bytes = 64 << 20

        package init() {}
    }

    private struct Kept {
        var sessions: [SessionID: Session] = [:]
        var bytes = 0
        /// The numbers beyond which sessions are dropped next; above the limits if many sessions
        /// are needed.
        var next: (sessions: Int, bytes: Int)
        var isFull: Bool { sessions.count > next.sessions || bytes > next.bytes }
    }

    private let kept: Mutex<Kept>
    private let uses = Atomic<UInt64>(0)
    private let limits: Limits
    private let pinned: @Sendable () -> Set<SessionID>
    private let database: StateDatabase
    /// Seals sessions for links; nil unless this is a node of a cluster.
    package let sealer: SessionSealer?

    /// Loads the sessions that earlier runs kept; blocks on the disk.
    ///
    /// - Parameters:
    ///   - database: where they are kept.
    ///   - limits: how many.
    ///   - sealer: seals sessions for links; nil unless this is a node of a cluster.
    ///   - pinned: the titles whose sessions are not dropped.
    package init(
        _ database: StateDatabase, limits: Limits = Limits(), sealer: SessionSealer? = nil,
        pinned: @escaping @Sendable () -> Set<SessionID> = { [] }
    ) {
        self.database = database
        self.limits = limits
        self.sealer = sealer
        self.pinned = pinned
        kept = Mutex(Kept(next: (limits.sessions, limits.bytes)))
        for record in database.records(SessionRecord.self) {
            let session = Session(record)
            kept.withLock { kept in
                guard kept.sessions.updateValue(session, forKey: session.id) == nil else { return }
                kept.bytes += session.size
            }
        }
    }

    /// The number of sessions that are kept.
    package var count: Int { kept.withLock { $0.sessions.count } }

    /// The session of an entry: the same entry with the same headers is the same session.
    package func session(for entry: Entry, recording: String? = nil) -> Session {
        let asked = Self.unkept(for: entry, recording: recording)
        guard !asked.isOfEntry else { return asked }
        if sealer == nil { return keep(asked) }
        if let known = kept.withLock({ $0.sessions[asked.id] }), !known.isForgotten, isSealed(known)
        {
            return keep(known)
        }
        return keep(sealed(asked))
    }

    /// The session of a recording: only the node that has the recording keeps it, with its headers;
    /// the others show it.
    package func session(for entry: Entry, recording: String, isElsewhere: Bool) -> Session {
        isElsewhere
            ? Self.unkept(for: entry, recording: recording)
            : session(for: entry, recording: recording)
    }

    /// Keeps a session, unless an equal one is kept.
    private func keep(_ asked: Session) -> Session {
        let id = asked.id
        let (session, isNew, isFull) = kept.withLock { kept -> (Session, Bool, Bool) in
            let known = kept.sessions[id]
            // A forgotten recording may come back from another node.
            let isNew = known?.isForgotten ?? true
            if let known, !isNew, known.seal?.text == asked.seal?.text {
                return (known, false, false)
            }
            kept.sessions[id] = asked
            kept.bytes += asked.size - (known?.size ?? 0)
            return (asked, isNew, kept.isFull)
        }
        noteUse(of: session)
        if isNew { database.put(session.record) }
        if isFull { makeRoom() }
        return session
    }

    private func noteUse(of session: Session) {
        session.lastUse.store(uses.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
    }

    /// Drops sessions down to seven eighths of the limits, so that it is not done for each new one.
    private func makeRoom() {
        let pinned = pinned()
        let dropped = kept.withLock { kept -> [SessionID] in
            // Without the sessions themselves, which would all count as held.
            let order = kept.sessions.compactMap { id, session -> (use: UInt64, id: SessionID)? in
                guard !session.isRecording || session.isForgotten, !pinned.contains(id) else {
                    return nil
                }
                if session.hadNoCredentials { return (0, id) }
                return (session.lastUse.load(ordering: .relaxed) &+ 1, id)
            }.sorted { ($0.use, $0.id.number) < ($1.use, $1.id.number) }
            var dropped: [SessionID] = []
            for (_, id) in order {
                guard
                    kept.sessions.count > limits.sessions / 8 * 7
                        || kept.bytes > limits.bytes / 8 * 7
                else { break }
                guard var session = kept.sessions.removeValue(forKey: id) else { continue }
                // Another reference means that a download, a window or a request works for the
                // session; no new one can appear while the lock is held.
                guard isKnownUniquelyReferenced(&session) else {
                    kept.sessions[id] = session
                    continue
                }
                kept.bytes -= session.size
                dropped.append(id)
            }
            kept.next.sessions = max(
                limits.sessions, kept.sessions.count + max(1, limits.sessions / 8))
            kept.next.bytes = max(limits.bytes, kept.bytes + limits.bytes / 8)
            return dropped
        }
        for id in dropped {
            database.remove(SessionRecord.self, key: [.integer(Int64(bitPattern: id.number))])
        }
    }

    /// Removes the headers from the session of a forgotten recording, see `Session.forgotten`.
    ///
    /// The remains count in the limits like other sessions, and as just used; without credentials
    /// they are dropped first.
    package func forgetRecording(_ id: SessionID) {
        let (left, isFull) = kept.withLock { kept -> (Session?, Bool) in
            guard let known = kept.sessions[id], !known.isForgotten else { return (nil, false) }
            let left = known.forgotten
            noteUse(of: left)
            kept.sessions[id] = left
            kept.bytes += left.size - known.size
            return (left, kept.isFull)
        }
        guard let left else { return }
        database.put(left.record)
        if isFull { makeRoom() }
    }

    /// Removes the headers from the sessions of all recordings but the known ones, since the daemon
    /// may have ended before `forgetRecording` was called.
    package func forgetRecordings(besides known: Set<String>) {
        let gone = kept.withLock { kept -> [SessionID] in
            kept.sessions.compactMap { id, session -> SessionID? in
                guard let recording = session.shift.recording, !known.contains(recording) else {
                    return nil
                }
                return id
            }
        }
        for id in gone { forgetRecording(id) }
    }

    // MARK: Sessions in links

    /// True if links of the session carry what they need: with the key that seals now, or nothing.
    private func isSealed(_ session: Session) -> Bool {
        guard let sealer, session.isCarried else { return true }
        return session.seal?.keyID == sealer.firstID
    }

    /// Returns the session for writing links of it.
    ///
    /// Recordings are on one node, and their sessions with them.
    package func sealed(_ session: Session) -> Session {
        guard let sealer, !isSealed(session) else { return session }
        let content = SealedContent(
            fields: session.fields, window: session.shift.window, limit: session.limit)
        return Session(
            id: session.id, fields: session.fields, shift: session.shift, limit: session.limit,
            seal: sealer.seal(content, of: session.id))
    }

    /// Returns the seal for the links in a playlist that defines variables, since other nodes have
    /// not read that playlist; nil if there is nothing to carry, or too much.
    package func seal(of session: Session, defining variables: [String: String]) -> SessionSeal? {
        guard let sealer, !variables.isEmpty, session.shift.recording == nil else {
            return session.seal
        }
        let content = SealedContent(
            fields: session.fields, window: session.shift.window, limit: session.limit,
            variables: variables)
        return sealer.seal(content, of: session.id) ?? session.seal
    }

    /// Returns the session that a link carries, and keeps it like one that was entered here.
    package func opened(
        _ text: Substring, of id: SessionID
    ) throws(SealFault) -> Session {
        guard let sealer else { throw .malformed }
        if let known = kept.withLock({ $0.sessions[id] }), let seal = known.seal, seal.text == text
        {
            noteUse(of: known)
            return known
        }
        let (content, seal) = try sealer.open(text, of: id)
        let session = Session(
            id: id, fields: content.fields, shift: .init(window: content.window),
            limit: content.limit, seal: seal)
        let isKept = kept.withLock { $0.sessions[id] != nil }
        if !isKept, session.isCarried, seal.variables.isEmpty { return keep(session) }
        return session
    }

    /// True if links of a session must carry it: one without it was not written by this cluster.
    package func mustBeCarried(_ id: SessionID) -> Bool {
        guard sealer != nil else { return false }
        return kept.withLock { $0.sessions[id]?.isCarried ?? false }
    }

    /// Returns the session that an entry would make, without keeping it.
    package static func unkept(for entry: Entry, recording: String? = nil) -> Session {
        var fields = Fields()
        for header in entry.headers { fields.append(header.name, header.value) }
        let shift = Session.Shift(window: entry.window, recording: recording)
        // A session without headers is rebuilt from its ID alone, so it need not be kept.
        guard !fields.isEmpty || shift != .none || entry.limit != .none else {
            return Session(startingAt: entry.url)
        }
        return Session(
            id: Session.id(startingAt: entry.url, fields, shift, entry.limit), fields: fields,
            shift: shift, limit: entry.limit)
    }

    /// True if an entry URL with the session's headers, shift and limit makes this session.
    package static func starts(_ session: Session, at url: AbsoluteURL) -> Bool {
        Session.id(startingAt: url, session.fields, session.shift, session.limit) == session.id
    }

    /// Returns the stored sessions that start at this URL.
    package func ids(startingAt url: AbsoluteURL) -> [SessionID] {
        let known = kept.withLock { Array($0.sessions.values) }
        return known.filter { Self.starts($0, at: url) }.map(\.id)
    }

    /// Returns the session of a handle; an unknown one is a session without headers.
    package func session(_ id: SessionID) -> Session {
        guard let known = kept.withLock({ $0.sessions[id] }) else {
            return Session(id: id, fields: Fields())
        }
        noteUse(of: known)
        return known
    }

    /// Returns the recording that a stored session plays; does not count as a use.
    package func recording(of id: SessionID) -> String? {
        kept.withLock { $0.sessions[id]?.shift.recording }
    }
}
