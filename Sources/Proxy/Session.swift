/// What a player started from: its extra request headers, and the jar its cookies go to.
package import HTTP
import Posix
package import Routing
package import Store
import Synchronization
import URISyntax

/// One session.
///
/// Everything reached from an entry URL carries its ID.
package final class Session: Sendable {
    package let id: SessionID
    /// Headers given at entry, sent with every request of the session.
    package let fields: Fields
    /// True when responses may differ by who asks: credentials were given at entry.
    package let hasCredentials: Bool

    package init(id: SessionID, fields: Fields) {
        self.id = id
        self.fields = fields
        hasCredentials = fields.contains(.authorization) || fields.contains(.cookie)
    }

    /// What keeps this viewer's playlists apart from those of others in their keys; nil where they
    /// are shared.
    ///
    /// Credentials may make a playlist its viewer's own; user information counts by its digest.
    func viewer(of url: AbsoluteURL) -> String? {
        var viewer = hasCredentials ? id.text : ""
        if let userinfo = url.userinfo {
            viewer += SessionID(digest: SHA256Digest.of("userinfo " + userinfo)).text
        }
        return viewer.isEmpty ? nil : viewer
    }
}

/// All sessions with headers, kept across restarts.
///
/// Any thread may use it.
package final class SessionTable: Sendable {
    private let sessions = Mutex<[SessionID: Session]>([:])
    private let store: ObjectStore

    /// Loads the sessions that earlier runs kept; blocks on the index.
    package init(store: ObjectStore) {
        self.store = store
        for (id, blob) in store.loadSessions() {
            guard id.count == 6 else { continue }
            let session = Session(id: SessionID(digest: id), fields: Self.decode(blob))
            sessions.withLock { $0[session.id] = session }
        }
    }

    /// The session of an entry: the same entry with the same headers is the same session.
    package func session(for entry: Entry) -> Session {
        var fields = Fields()
        for header in entry.headers { fields.append(header.name, header.value) }
        let digest = Self.digest(of: entry.url, fields: fields)
        let id = SessionID(digest: digest)
        // A session without headers is rebuilt from its ID alone, so it need not be kept.
        guard !fields.isEmpty else { return Session(id: id, fields: fields) }
        let (session, isNew) = sessions.withLock { sessions -> (Session, Bool) in
            if let known = sessions[id] { return (known, false) }
            let made = Session(id: id, fields: fields)
            sessions[id] = made
            return (made, true)
        }
        if isNew { store.saveSession(id: Array(digest.prefix(6)), blob: Self.encode(fields)) }
        return session
    }

    /// The session that an entry URL makes with these headers.
    static func id(of url: AbsoluteURL, fields: Fields) -> SessionID {
        SessionID(digest: digest(of: url, fields: fields))
    }

    /// The sessions with headers that start at this URL.
    func ids(startingAt url: AbsoluteURL) -> [SessionID] {
        let known = sessions.withLock { Array($0.values) }
        return known.filter { Self.id(of: url, fields: $0.fields) == $0.id }.map(\.id)
    }

    private static func digest(of url: AbsoluteURL, fields: Fields) -> [UInt8] {
        var text = url.normalisedForKey
        if let userinfo = url.userinfo { text += "\nuserinfo: \(userinfo)" }
        for (name, value) in fields { text += "\n\(name): \(value)" }
        return SHA256Digest.of(text)
    }

    /// The session of a handle; an unknown one is a session without headers.
    package func session(_ id: SessionID) -> Session {
        sessions.withLock { $0[id] } ?? Session(id: id, fields: Fields())
    }

    private static func encode(_ fields: Fields) -> [UInt8] {
        Array(fields.map { "\($0.name): \($0.value)\n" }.joined().utf8)
    }

    private static func decode(_ blob: [UInt8]) -> Fields {
        var fields = Fields()
        for line in blob.split(separator: 0x0A) { _ = fields.append(line: line) }
        return fields
    }
}
