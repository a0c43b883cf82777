// What a player started from: its extra request headers and the window or recording it plays.
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

    /// The source of the ID, computed lazily: it takes a digest, and hits on segments rarely need
    /// it.
    private enum Name: Sendable {
        case made(SessionID)
        case ofEntry(AbsoluteURL)
    }

    private let name: Mutex<Name>
    /// True if it was made from its entry URL alone, without headers or a shift.
    package let isOfEntry: Bool
    /// Headers given at entry; sent with every request of the session.
    package let fields: Fields
    /// True if responses may depend on the viewer: credentials were given at entry.
    let hasCredentials: Bool
    package let shift: Shift
    /// True if its lists reach further back than the origin's; stored, since a hit reads it several
    /// times.
    package let isShifted: Bool

    /// How far back a session sees a live stream.
    package struct Shift: Hashable, Sendable {
        /// The length of the window in seconds; nil for the origin's own.
        package var window: Int?
        /// The recording that the session plays; its playlists are its own.
        package var recording: String?

        package static let none = Self()

        /// The stored form, one line for each value; empty for none.
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

    /// Makes a session without headers and with the origin's own window from its entry URL.
    package init(startingAt url: AbsoluteURL) {
        name = Mutex(.ofEntry(url))
        isOfEntry = true
        fields = Fields()
        shift = .none
        isShifted = false
        hasCredentials = false
    }

    /// Returns the part of cache keys that keeps this viewer's playlists apart; nil where they are
    /// shared.
    ///
    /// Credentials may make a playlist specific to a viewer; user information enters as a digest.
    func viewer(of url: AbsoluteURL) -> String? {
        var viewer = hasCredentials || shift.recording != nil ? id.text : ""
        if let userinfo = url.userinfo {
            viewer += SessionID(digest: SHA256Digest.of("userinfo " + userinfo)).text
        }
        return viewer.isEmpty ? nil : viewer
    }
}

/// All sessions with headers or a shift; they survive restarts.
///
/// Any thread may use it.
package final class SessionTable: Sendable {
    private let sessions = Mutex<[SessionID: Session]>([:])
    private let database: StateDatabase

    /// Restores the sessions of earlier runs; blocks on the disk.
    package init(_ database: StateDatabase) {
        self.database = database
        for record in database.records(SessionRecord.self) {
            let session = Session(record)
            sessions.withLock { $0[session.id] = session }
        }
    }

    /// Returns the session of an entry; equal entries with equal headers share a session.
    package func session(for entry: Entry, recording: String? = nil) -> Session {
        let asked = Self.unkept(for: entry, recording: recording)
        guard !asked.isOfEntry else { return asked }
        let id = asked.id
        let (session, isNew) = sessions.withLock { sessions -> (Session, Bool) in
            if let known = sessions[id] { return (known, false) }
            sessions[id] = asked
            return (asked, true)
        }
        if isNew { database.put(session.record) }
        return session
    }

    /// The session that an entry makes, for whoever only asks about it: nothing is kept of it.
    package static func unkept(for entry: Entry, recording: String? = nil) -> Session {
        var fields = Fields()
        for header in entry.headers { fields.append(header.name, header.value) }
        let shift = Session.Shift(window: entry.window, recording: recording)
        // A session without headers is rebuilt from its ID alone, so it need not be kept.
        guard !fields.isEmpty || shift != .none else { return Session(startingAt: entry.url) }
        let digest = digest(of: entry.url, fields: fields, shift)
        return Session(id: SessionID(digest: digest), fields: fields, shift: shift)
    }

    /// True if an entry URL with the session's headers and shift makes this session.
    package static func starts(_ session: Session, at url: AbsoluteURL) -> Bool {
        SessionID(digest: digest(of: url, fields: session.fields, session.shift)) == session.id
    }

    /// Returns the stored sessions that start at this URL.
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

    /// Returns the session of a handle; an unknown one is a session without headers.
    package func session(_ id: SessionID) -> Session {
        sessions.withLock { $0[id] } ?? Session(id: id, fields: Fields())
    }
}

extension Session {
    /// The stored form of a session with headers or a shift.
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
    /// How far back lists reach; nil for everything that was recorded.
    package var duration: Duration? { window.map { .seconds($0) } }

    package var limits: TimeShift.Limits {
        var limits = TimeShift.Limits()
        // A week of 4 s segments.
        if recording != nil { limits.segmentCount = 200_000 }
        return limits
    }
}
