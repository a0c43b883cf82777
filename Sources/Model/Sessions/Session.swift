// What a player started from: its extra request headers, and the jar its cookies go to.
package import DurableState
package import HLS
package import HTTP
package import Routing
import Store
import Synchronization
package import URISyntax

/// One session.
///
/// Everything reached from an entry URL carries its ID.
package final class Session: Sendable {
    package var id: SessionID {
        name.withLock { name in
            switch name {
            case .made(let id): return id
            case .ofEntry(let url):
                let digest = SessionTable.digest(of: url, fields: fields, shift)
                let id = SessionID(digest: digest)
                name = .made(id)
                return id
            }
        }
    }

    /// Where the ID comes from: it takes a digest, and hits on segments hardly ever ask for it.
    private enum Name: Sendable {
        case made(SessionID)
        case ofEntry(AbsoluteURL)
    }

    private let name: Mutex<Name>
    /// Whether it was made for what its entry URL itself leads to.
    package let isOfEntry: Bool
    /// Headers given at entry, sent with every request of the session.
    package let fields: Fields
    /// True when responses may differ by who asks: credentials were given at entry.
    let hasCredentials: Bool
    package let shift: Shift
    /// Whether its lists reach farther back than the origin's; asked several times for a hit.
    package let isShifted: Bool

    /// How far back a session sees a live stream.
    package struct Shift: Hashable, Sendable {
        /// The length of the window in seconds; nil for the origin's own.
        package var window: Int?
        /// Names the recording that the session is; its playlists are its own.
        package var recording: String?

        package static let none = Self()

        /// As it is kept, a line for each; empty for none.
        package var text: String {
            (window.map { "dvr=\($0)\n" } ?? "") + (recording.map { "recording=\($0)\n" } ?? "")
        }
    }

    package init(id: SessionID, fields: Fields, shift: Shift = .none) {
        name = Mutex(.made(id))
        isOfEntry = false
        self.fields = fields
        self.shift = shift
        isShifted = shift != .none
        hasCredentials = fields.contains(.authorization) || fields.contains(.cookie)
    }

    /// A session without headers and of the origin's own window, by what it started from.
    package init(startingAt url: AbsoluteURL) {
        name = Mutex(.ofEntry(url))
        isOfEntry = true
        fields = Fields()
        shift = .none
        isShifted = false
        hasCredentials = false
    }

    /// What keeps this viewer's playlists apart from those of others in their keys; nil where they
    /// are shared.
    ///
    /// Credentials may make a playlist its viewer's own; user information counts by its digest.
    func viewer(of url: AbsoluteURL) -> String? {
        var viewer = hasCredentials || shift.recording != nil ? id.text : ""
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
    private let database: StateDatabase

    /// Loads the sessions that earlier runs kept; blocks on the disk.
    package init(_ database: StateDatabase) {
        self.database = database
        for record in database.records(SessionRecord.self) {
            let session = Session(record)
            sessions.withLock { $0[session.id] = session }
        }
    }

    /// The session of an entry: the same entry with the same headers is the same session.
    package func session(for entry: Entry, recording: String? = nil) -> Session {
        var fields = Fields()
        for header in entry.headers { fields.append(header.name, header.value) }
        let shift = Session.Shift(window: entry.window, recording: recording)
        // A session without headers is rebuilt from its ID alone, so it need not be kept.
        guard !fields.isEmpty || shift != .none else { return Session(startingAt: entry.url) }
        let digest = Self.digest(of: entry.url, fields: fields, shift)
        let id = SessionID(digest: digest)
        let (session, isNew) = sessions.withLock { sessions -> (Session, Bool) in
            if let known = sessions[id] { return (known, false) }
            let made = Session(id: id, fields: fields, shift: shift)
            sessions[id] = made
            return (made, true)
        }
        if isNew { database.put(session.record) }
        return session
    }

    /// Whether a session is the one that an entry URL makes with its headers.
    package static func starts(_ session: Session, at url: AbsoluteURL) -> Bool {
        SessionID(digest: digest(of: url, fields: session.fields, session.shift)) == session.id
    }

    /// The sessions with headers that start at this URL.
    package func ids(startingAt url: AbsoluteURL) -> [SessionID] {
        let known = sessions.withLock { Array($0.values) }
        return known.filter { Self.starts($0, at: url) }.map(\.id)
    }

    fileprivate static func digest(
        of url: AbsoluteURL, fields: Fields, _ shift: Session.Shift
    ) -> [UInt8] {
        var text = url.normalisedForKey
        if let userinfo = url.userinfo { text += "\nuserinfo: \(userinfo)" }
        for (name, value) in fields { text += "\n\(name): \(value)" }
        if shift != .none { text += "\n" + shift.text }
        return SHA256Digest.of(text)
    }

    /// The session of a handle; an unknown one is a session without headers.
    package func session(_ id: SessionID) -> Session {
        sessions.withLock { $0[id] } ?? Session(id: id, fields: Fields())
    }
}

extension Session {
    /// What is kept of a session with headers or a shift.
    package var record: SessionRecord {
        SessionRecord(
            id: id.number, window: shift.window, recording: shift.recording,
            fields: fields.map { "\($0.name): \($0.value)\n" }.joined())
    }

    package convenience init(_ record: SessionRecord) {
        var fields = Fields()
        for line in record.fields.utf8.split(separator: 0x0A) {
            _ = fields.append(line: Array(line)[...])
        }
        let window = record.window.flatMap { (1...WindowLength.longest).contains($0) ? $0 : nil }
        self.init(
            id: SessionID(record.id), fields: fields,
            shift: Shift(window: window, recording: record.recording))
    }
}

extension Session.Shift {
    /// How far back lists reach; nil for all that was seen.
    package var duration: Duration? { window.map { .seconds($0) } }

    package var limits: TimeShift.Limits {
        var limits = TimeShift.Limits()
        // A week of 4 s segments.
        if recording != nil { limits.segmentCount = 200_000 }
        return limits
    }
}
