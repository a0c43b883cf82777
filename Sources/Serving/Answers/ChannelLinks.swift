import HLS
import HTTP
import Logging
import Model
import Routing
import URISyntax

/// Links to the entries of a channel list that have request headers of their own.
///
/// Each set of headers makes a session, which starts at the list and also has the headers of the
/// list's session.
struct ChannelLinks {
    private let headers: ChannelHeaders
    private let resource: Resource
    private let base: AbsoluteURL
    private let core: ProxyCore
    private var writers: [[Entry.Header]: LinkWriter] = [:]

    /// - Parameters:
    ///   - headers: the headers in the list.
    ///   - resource: the list.
    ///   - base: the list's URL after redirects.
    ///   - core: provides sessions and the signer.
    init(_ headers: ChannelHeaders, of resource: Resource, base: AbsoluteURL, _ core: ProxyCore) {
        self.headers = headers
        self.resource = resource
        self.base = base
        self.core = core
        if headers.refused > 0 {
            core.log.warning(
                "a channel list sets headers that may not be set, or too many; its entries go without them",
                metadata: ["list": "\(resource.url.redacted)", "count": "\(headers.refused)"])
        }
    }

    /// Returns the writer of an entry's link; nil for an entry without headers of its own.
    mutating func links(of reference: ResourceReference, prefix: String) -> LinkWriter? {
        guard reference.tag == .inf, let own = headers.byLine[reference.line] else { return nil }
        if let known = writers[own] { return known }
        let session = core.sessions.session(
            for: Entry(url: resource.url, headers: inherited(besides: own) + own))
        let writer = LinkWriter(
            session: session.id, prefix: prefix, signer: core.signer,
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
