// The entry by which a user names titles.
import HTTP
package import Model
package import Routing
package import URISyntax

/// The URL that titles start at, with the headers, the window and the limit by which a session is
/// meant.
package struct TitleStart: Sendable {
    /// The entry: the origin's URL, and what was given with it.
    package var entry: Entry
    /// The recording that the session plays.
    private let recording: String?

    package init(_ entry: Entry) {
        self.entry = entry
        recording = nil
    }

    /// Creates the entry of a URL in a link of a session, with what else the session was made from.
    package init(_ url: AbsoluteURL, in session: Session) {
        entry = Entry(
            url: url,
            headers: session.fields.map { Entry.Header(name: $0.name, value: $0.value) },
            window: session.shift.window, limit: session.limit)
        recording = session.shift.recording
    }

    package var url: AbsoluteURL { entry.url }

    /// The session that is meant; nil if nothing was given with the URL, which then means all.
    package var session: Session? {
        let made = SessionTable.unkept(for: entry, recording: recording)
        return made.isOfEntry ? nil : made
    }
}
