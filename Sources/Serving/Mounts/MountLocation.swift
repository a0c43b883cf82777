import HTTP
import Routing
import URISyntax

/// Where a mounted origin sends its clients, in terms of the mount.
extension Mount {
    /// Rewrites `Location` and `Content-Location` of an answer to `url`: what lies under the mount's
    /// origin becomes a path here; what is relative and lies elsewhere becomes absolute, since
    /// here it would mean another place.
    func localise(_ fields: inout Fields, of url: AbsoluteURL, basePath: String) {
        for name in [FieldName.location, .contentLocation] {
            guard let value = fields.first(name), !value.isEmpty,
                let local = local(value, from: url, basePath: basePath), local != value
            else { continue }
            fields.set(name, local)
        }
    }

    /// The same place for a client of ours; nil where the text is no reference to http or https.
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
