// Recordings as the API shows them.
import HLS
import HTTP
import Library
import Model
import Numbers
import Origin
import Posix
import Reactor
import Routing
import SharedStore
import Store
import Synchronization
import URISyntax

extension RecordingTable {
    /// Returns a recording for the API; `wasOver` if it had already ended when it was asked to
    /// stop.
    func json(
        _ order: RecordingOrder, _ recording: Recording?, wasOver: Bool = false,
        holder: String? = nil
    ) -> JSONValue {
        let session =
            recording?.session
            ?? services.sessions.session(
                for: order.entry, recording: order.id, isElsewhere: holder != nil)
        let isPurged = recording == nil && holder == nil && lacksEntry(order, session)
        var order = order
        if isPurged {
            order.state = .failed
            order.reason = "its playlists are not stored any more: they were purged or cleared"
            (order.seconds, order.segments, order.lost, order.bytes) = (0, 0, 0, 0)
        }
        let lists = recording?.progress ?? []
        if !lists.isEmpty {
            order.seconds = lists.map(\.seconds).max() ?? 0
            order.segments = lists.map(\.segments).saturatedSum()
            order.lost = lists.map(\.lost).saturatedSum()
        }
        let ended = order.state.isOver ? order.ended : nil
        return .object([
            .init("id", .text(order.id)),
            .init("name", .text(order.name ?? TitleName.derived(from: order.choice.url))),
            .init("url", .text(order.choice.url.redacted)),
            .init("state", .text(order.state.rawValue)),
            .init("reason", .text(recording?.ending?.obstacle ?? order.reason)),
            .init("started", .number(order.started.seconds)),
            .init("until", .number(order.until.seconds)),
            // One that is being finished, or was when it was paused, shows no end: for the API that
            // is when it is done.
            .init("ended", ended.map { .number($0.seconds) } ?? .null),
            .init("was_over", .truth(wasOver)),
            .init("seconds", .fraction(order.seconds)),
            .init("segments", .number(Int64(order.segments))),
            .init("lost", .number(Int64(order.lost))),
            .init("bytes", .number(recording?.bytes ?? order.bytes)),
            .init("title", .text(session.id.text)),
            .init(
                "node",
                (holder ?? services.flights.orders?.name).map(JSONValue.text) ?? .null),
            // Without the recording, and its headers, this node would play the live stream.
            .init(
                "play",
                holder == nil && !isPurged ? .text(link(order.choice.url, session)) : .null),
            .init(
                "lists",
                .list(
                    lists.map {
                        .object([
                            .init("label", .text($0.label)),
                            .init("segments", .number(Int64($0.segments))),
                            .init("seconds", .fraction($0.seconds)),
                            .init("lost", .number(Int64($0.lost))),
                        ])
                    })),
        ])
    }

    /// True if the entry of a recording that is done is stored no more: nothing plays it then.
    ///
    /// Its record stays as it is: what is stored is looked for each time. A disk that fails to read
    /// it does not count. Blocks on the disk.
    private func lacksEntry(_ order: RecordingOrder, _ session: Session) -> Bool {
        guard order.state == .done else { return false }
        let (keys, url) = (services.names.keys, order.choice.url)
        let key = ObjectKey(keys.cacheKey(of: url, session: session, role: .playlist))
        guard services.store.presence(of: [key]) == [.absent] else { return false }
        // The rules of its keys may have changed since it was stored.
        return !keys.entryKeys(url, of: session).contains { [store = services.store] key in
            guard let object = store.peek(key) else { return store.isUnreadable(key) }
            return object.title == session.id.number
        }
    }

    /// Returns the path that a player starts it from.
    private func link(_ url: AbsoluteURL, _ session: Session) -> String {
        var path = Array("\(services.basePath)/".utf8)
        path.append(ResourceRole.playlist.letter)
        path.append(0x2F)
        let links = LinkWriter(
            session: session.id, prefix: "", signer: services.signer,
            userSigner: services.names.keys.mountUsers.signer(of: url),
            handle: services.names.handle(for:session:epoch:))
        path += links.handleText(of: url, for: .link(.playlist))
        path.append(0x2F)
        ResourceRole.playlist.appendSafeFileName(for: url, hasMap: false, to: &path)
        return String(decoding: path, as: UTF8.self)
    }
}
