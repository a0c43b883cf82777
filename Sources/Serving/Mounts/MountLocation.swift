import HTTP
import Model
import Routing
import URISyntax

/// Fields of a mounted origin that have another meaning in responses of this host.
extension Mount {
    /// Rewrites `Location` and `Content-Location` of a response to `url`: a URL under the mount's
    /// origin becomes a path of the mount; a relative reference outside it becomes absolute, since
    /// relative to the mount it would have another meaning.
    ///
    /// A client that has the access token in its query follows a redirect without it: `Location`
    /// gets the argument too.
    ///
    /// Fields that state something of the origin's host, whatever the path, are dropped: clients would
    /// take them for statements of this one (RFC 7838 section 3, RFC 6797 section 8.1).
    func localise(
        _ fields: inout Fields, of url: AbsoluteURL, for request: RequestHead,
        _ settings: ProxySettings
    ) {
        fields.remove(.altSvc)
        fields.remove(.strictTransportSecurity)
        for name in [FieldName.location, .contentLocation] {
            guard let value = fields.first(name), !value.isEmpty else { continue }
            let argument =
                name == .location
                ? AccessToken.argumentText(of: request, with: settings.token) : nil
            let basePath = LinkPrefix.path(of: request, settings)
            guard let local = local(value, from: url, basePath: basePath, adding: argument),
                local != value
            else { continue }
            fields.set(name, local)
        }
    }

    /// Returns the reference for clients of the mount; nil if the text is not a reference to http
    /// or https.
    private func local(
        _ text: String, from url: AbsoluteURL, basePath: String, adding argument: String?
    ) -> String? {
        let resolver = URLResolver(base: url.withoutUserinfo)
        guard let place = try? resolver.resolve(text) else { return nil }
        let mark = text.utf8.firstIndex(of: 0x23)
        let fragment = mark.map { String(text[$0...]) } ?? ""
        guard place.origin == origin.origin, place.path.hasPrefix(origin.path) else {
            return (try? AbsoluteURL(text)) == nil ? place.text + fragment : text
        }
        let added = argument.map { (place.query == nil ? "?" : "&") + $0 } ?? ""
        let target = place.pathAndQuery.dropFirst(origin.path.count)
        return "\(basePath)\(path)\(target)\(added)\(fragment)"
    }
}
