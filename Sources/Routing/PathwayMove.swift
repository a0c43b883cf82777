import HLS
package import HTTP
package import URISyntax

/// The changes that a pathway clone (8216bis, 7.1) makes to the links of its base pathway.
///
/// A player builds the URLs of a clone itself: it inserts the clone's HOST and PARAMS into those of
/// the base pathway. Those are links to the daemon, so HOST would bypass it and PARAMS would not
/// reach the origin. In the steering manifest that the player gets, HOST is therefore replaced by
/// an additional parameter; the parameters come back to the daemon and are applied to the origin's
/// URL.
package struct PathwayMove: Sendable {
    /// The parameter that replaces HOST: the handle of the host's root.
    package static let hostParameter = "_sluice_host"
    /// The parameter of a clone without HOST: marks the others as its PARAMS.
    package static let plainParameter = "_sluice_params"

    /// The text of the host's handle; nil for a clone that keeps the host of its base.
    package let host: String?
    /// PARAMS as in the query, in its order.
    package let parameters: [QueryItem]

    /// Parses a query; nil if it does not belong to a clone.
    package init?(_ items: [QueryItem]) {
        // A clone of a clone replaces the parameters of the first one.
        let host = items.last { $0.rawName == Self.hostParameter }?.rawValue
        guard host != nil || items.contains(where: { $0.rawName == Self.plainParameter }) else {
            return nil
        }
        self.host = host
        parameters = items.compactMap { item -> QueryItem? in
            if item.rawName.hasPrefix("_HLS_") { return nil }
            guard item.rawName.hasPrefix(JSONRewriter.ownParameters) else { return item }
            return Self.anothers(item)
        }
    }

    /// A parameter of the daemon behind this one, under the name that it gave it; nil for ours.
    private static func anothers(_ item: QueryItem) -> QueryItem? {
        let prefix = JSONRewriter.ownParameters
        let rest = item.rawName.dropFirst(prefix.count)
        guard rest.utf8.first == JSONRewriter.anothersMark else { return nil }
        return QueryItem(rawName: prefix + rest.dropFirst(), rawValue: item.rawValue)
    }

    /// A URL that stands for a HOST in a manifest; nil for a text that is no host.
    ///
    /// `base` is the manifest's URL: its scheme is used until the clone's is known.
    package static func root(of host: [UInt8], base: AbsoluteURL) -> AbsoluteURL? {
        let bytes = Array("\(base.scheme.name)://".utf8) + host
        guard let url = try? AbsoluteURL(bytes: bytes), url.bytes == bytes, url.pathRange.isEmpty,
            url.queryRange == nil, url.userinfoRange == nil
        else { return nil }
        return url
    }

    /// The URL of the clone's playlist.
    ///
    /// With parameters it has no stand-in for a mount's user information: players write them, and no
    /// signature covers them, so that whoever has one link could have the password sent with any
    /// query.
    ///
    /// - Parameters:
    ///   - url: the base pathway's playlist.
    ///   - root: the URL of the host's handle; nil to keep the host.
    /// - Returns: nil if the result is not a URL.
    package func applied(to url: AbsoluteURL, root: AbsoluteURL?) -> AbsoluteURL? {
        let isSame = root == nil && parameters.isEmpty
        let url = url.hasStandIn && !isSame ? url.withoutUserinfo : url
        var bytes = Array(url.bytes[..<url.pathRange.upperBound])
        if let root {
            var authority = Array("\(url.scheme.name)://".utf8) + root.bytes[root.hostRange]
            if let port = root.explicitPort ?? url.explicitPort {
                authority += Array(":\(port)".utf8)
            }
            bytes = authority + url.bytes[url.pathRange]
        }
        let names = Set(parameters.map(\.rawName))
        let kept = url.query.map { QueryItem.items(of: $0) } ?? []
        let items = kept.filter { !names.contains($0.rawName) } + parameters
        if !items.isEmpty {
            bytes += Array("?\(items.map(\.text).joined(separator: "&"))".utf8)
        }
        return (try? AbsoluteURL(bytes: bytes)).map(Telemetry.stripped)
    }
}
