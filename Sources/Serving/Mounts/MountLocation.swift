import HTTP
import Routing
import URISyntax

/// Redirect targets of a mounted origin, translated to the mount.
extension Mount {
    /// Rewrites `Location` and `Content-Location` of a response to `url`: a URL under the mount's
    /// origin becomes a path of the mount; a relative reference outside it becomes absolute, since
    /// relative to the mount it would have another meaning.
    func localise(_ fields: inout Fields, of url: AbsoluteURL, basePath: String) {
        for name in [FieldName.location, .contentLocation] {
            guard let value = fields.first(name), !value.isEmpty,
                let local = local(value, from: url, basePath: basePath), local != value
            else { continue }
            fields.set(name, local)
        }
    }

    /// Returns the reference for clients of the mount; nil if the text is not a reference to http
    /// or https.
    private func local(_ text: String, from url: AbsoluteURL, basePath: String) -> String? {
        let resolver = URLResolver(base: url.withoutUserinfo)
        guard let place = try? resolver.resolve(text) else { return nil }
        let mark = text.utf8.firstIndex(of: 0x23)
        let fragment = mark.map { String(text[$0...]) } ?? ""
        guard place.origin == origin.origin, place.path.hasPrefix(origin.path) else {
            return (try? AbsoluteURL(text)) == nil ? place.text + fragment : text
        }
        return basePath + path + place.pathAndQuery.dropFirst(origin.path.count) + fragment
    }
}
