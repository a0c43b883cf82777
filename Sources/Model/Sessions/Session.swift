// What a player started from: its extra request headers, the window or recording it plays, and the
// limit of its variants.
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
                let id = Self.id(startingAt: url, fields, shift, limit)
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
    /// True if it was made from its entry URL alone, without headers, a shift or a limit.
    package let isOfEntry: Bool
    /// Headers given at entry; sent with every request of the session.
    package let fields: Fields
    /// True if responses may depend on the viewer: credentials were given at entry.
    var hasCredentials: Bool { credentialsDigest != nil }
    /// The digest of the credentials given at entry; nil without any.
    private let credentialsDigest: String?
    package let shift: Shift
    /// True if its lists reach further back than the origin's; stored, since a hit reads it several
    /// times.
    package let isShifted: Bool
    /// The highest variants that its multivariant playlists offer; what is stored has all.
    package let limit: VariantLimit
    /// The sealed session in its links, on nodes of a cluster; nil where links need nothing.
    package let seal: SessionSeal?
    /// The number of the last lookup of it in the table.
    let lastUse = Atomic<UInt64>(0)

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

    package init(
        id: SessionID, fields: Fields, shift: Shift = .none, limit: VariantLimit = .none,
        seal: SessionSeal? = nil
    ) {
        name = Mutex(.made(id))
        isOfEntry = false
        self.fields = fields
        self.shift = shift
        isShifted = shift != .none
        self.limit = limit
        self.seal = seal
        credentialsDigest = Self.digest(ofCredentials: fields)
    }

    /// Makes a session from its entry URL: without headers, with the origin's own window and all
    /// variants.
    package init(startingAt url: AbsoluteURL) {
        name = Mutex(.ofEntry(url))
        isOfEntry = true
        fields = Fields()
        shift = .none
        isShifted = false
        limit = .none
        seal = nil
        credentialsDigest = nil
    }

    /// Returns the part of cache keys that keeps this viewer's playlists apart; nil where they are
    /// shared.
    ///
    /// Credentials may make a playlist specific to a viewer; `user` is the digest of the user
    /// information in its URL.
    func viewer(_ user: String?) -> String? {
        var viewer = hasCredentials || shift.recording != nil ? id.text : ""
        if let user { viewer += user }
        return viewer.isEmpty ? nil : viewer
    }

    private static func digest(ofCredentials fields: Fields) -> String? {
        guard fields.contains(.authorization) || fields.contains(.cookie) else { return nil }
        let given = [FieldName.authorization, .cookie].map { fields.combined($0) ?? "" }
        let text = "credentials \(given[0])\n\(given[1])"
        return SessionID(digest: SHA256Digest.of(text)).text
    }

    /// Returns what stands for the credentials of its requests; nil without any.
    ///
    /// It is the same for sessions that differ in other headers, or in their window or recording.
    ///
    /// - Parameter user: the digest of the user information in the requested URL.
    /// - Returns: the text, of hexadecimal digits.
    func credentials(_ user: String?) -> String? {
        credentialsDigest.map { $0 + (user ?? "") } ?? user
    }

    /// True if it has the credentials of another session, or if that one has none: it may then use
    /// what the other session fetched.
    package func hasCredentials(of other: Session) -> Bool {
        if other.isForgotten { return hasCredentials(ofForgotten: other) }
        guard other.hasCredentials else { return true }
        return [FieldName.authorization, .cookie].allSatisfy {
            fields.combined($0) == other.fields.combined($0)
        }
    }

    /// Returns the ID of a session that starts at a URL.
    static func id(
        startingAt url: AbsoluteURL, _ fields: Fields, _ shift: Shift, _ limit: VariantLimit
    ) -> SessionID {
        var text = url.normalisedForKey
        if let userinfo = url.userinfo { text += "\nuserinfo: \(userinfo)" }
        for (name, value) in fields { text += "\n\(name): \(value)" }
        if shift != .none { text += "\n" + shift.text }
        for (name, value) in limit.arguments { text += "\n\(name)=\(value)" }
        return SessionID(digest: SHA256Digest.of(text))
    }

    /// Bytes that it takes in memory, roughly.
    var size: Int {
        fields.reduce(256 + (seal?.text.utf8.count ?? 0)) {
            $0 + $1.name.utf8.count + $1.value.utf8.count + 8
        }
    }

    var isRecording: Bool { shift.recording != nil }

    /// Returns the limits of the playlists that are stored for the session.
    ///
    /// The playlists of a recording were written by Sluice and may join any number of the origin's
    /// lists; each of those was checked against the limits when it was fetched.
    package func limits(ofOrigins limits: PlaylistLimits) -> PlaylistLimits {
        isRecording ? .own : limits
    }

    /// True if a node that answers its links must know more than its ID.
    var isCarried: Bool {
        !isRecording && (!fields.isEmpty || isShifted || limit != .none)
    }
}
