import HLS
import HTTP
import Logging
import Model
import Routing
import URISyntax

/// Links to the entries of a channel list that have request headers of their own, and the types
/// that it states.
///
/// Each set of headers makes a session, which starts at the list and also has the headers of the
/// list's session and its window.
struct ChannelLinks {
    private let headers: ChannelHeaders
    private let resource: Resource
    private let base: AbsoluteURL
    private let prefix: String
    private let core: ProxyCore
    private var writers: [[Entry.Header]: LinkWriter] = [:]

    /// - Parameters:
    ///   - headers: the headers in the list.
    ///   - resource: the list.
    ///   - base: the list's URL after redirects.
    ///   - prefix: the prefix of each link, without the path of a sealed session.
    ///   - core: provides sessions and the signer.
    init(
        _ headers: ChannelHeaders, of resource: Resource, base: AbsoluteURL, prefix: String,
        _ core: ProxyCore
    ) {
        self.headers = headers
        self.resource = resource
        self.base = base
        self.prefix = prefix
        self.core = core
        if headers.refused > 0 {
            core.log.warning(
                "a channel list sets forbidden or too many headers; they are ignored",
                metadata: ["list": "\(resource.url.redacted)", "count": "\(headers.refused)"])
        }
    }

    /// True if the list states that an entry is a manifest of DASH or Smooth Streaming.
    func isForeignManifest(_ reference: ResourceReference) -> Bool {
        headers.foreignManifests.contains(reference.line)
    }

    /// Returns the writer of an entry's link; nil for an entry without headers of its own.
    mutating func links(of reference: ResourceReference) -> LinkWriter? {
        guard reference.tag == .inf, let own = headers.byLine[reference.line] else { return nil }
        if let known = writers[own] { return known }
        let entry = Entry(
            url: resource.url, headers: inherited(besides: own) + own,
            window: resource.session.shift.window, limit: resource.session.limit)
        if core.sessions.sealer != nil,
            let fault = SessionSealer.fault(of: SessionTable.unkept(for: entry).fields)
        {
            core.log.warning(
                "an entry of a channel list goes without its headers: \(fault)",
                metadata: ["list": "\(resource.url.redacted)", "line": "\(reference.line)"])
            return nil
        }
        let session = core.sessions.session(for: entry)
        let writer = LinkWriter(
            session: session.id, prefix: prefix + (session.seal?.path ?? ""),
            signer: session.seal?.signer ?? core.signer,
            userSigner: core.keys.mountUsers.signer(of: base),
            handle: core.names.handle(for:session:epoch:))
        writers[own] = writer
        return writer
    }

    private func inherited(besides own: [Entry.Header]) -> [Entry.Header] {
        let names = Set(own.map { ASCII.lowercased($0.name) })
        return resource.session.fields.map { Entry.Header(name: "\($0.name)", value: $0.value) }
            .filter { !names.contains(ASCII.lowercased($0.name)) }
    }
}
