package import HTTP
package import URISyntax

/// What a pathway clone (8216bis, 7.1) does to the links of its base pathway.
///
/// A player builds the URLs of a clone itself: it puts the clone's HOST and PARAMS into those of the
/// base pathway. Those are links to us, so that a HOST would lead it past us and PARAMS would not
/// reach the origin. In the steering manifest that the player sees, HOST has become a parameter
/// more; these parameters come back to us and are applied to the origin's URL.
package struct PathwayMove: Sendable {
    /// The parameter that stands for HOST: the handle of the host's root.
    package static let hostParameter = "_sluice_host"
    /// The parameter of a clone without HOST: tells that the others are its PARAMS.
    package static let plainParameter = "_sluice_params"

    /// The text of the host's handle; nil for a clone that keeps its base's.
    package let host: String?
    /// PARAMS as they stand in the query, in its order.
    package let parameters: [QueryItem]

    /// Reads a query; nil where it belongs to no clone.
    package init?(_ items: [QueryItem]) {
        // A clone of a clone replaces what the first one said.
        let host = items.last { $0.rawName == Self.hostParameter }?.rawValue
        guard host != nil || items.contains(where: { $0.rawName == Self.plainParameter }) else {
            return nil
        }
        self.host = host
        parameters = items.filter {
            !$0.rawName.hasPrefix("_sluice_") && !$0.rawName.hasPrefix("_HLS_")
        }
    }

    /// A URL that stands for a HOST in a manifest; nil for a text that is no host.
    ///
    /// `base` is where the manifest came from: its scheme is that of the clone until more is known.
    package static func root(of host: [UInt8], base: AbsoluteURL) -> AbsoluteURL? {
        let bytes = Array("\(base.scheme.name)://".utf8) + host
        guard let url = try? AbsoluteURL(bytes: bytes), url.bytes == bytes, url.pathRange.isEmpty,
            url.queryRange == nil, url.userinfoRange == nil
        else { return nil }
        return url
    }

    /// The URL of the clone's playlist.
    ///
    /// - Parameters:
    ///   - url: the base pathway's playlist.
    ///   - root: what the handle of the host leads to; nil to keep the host.
    /// - Returns: nil where the parts make no URL.
    package func applied(to url: AbsoluteURL, root: AbsoluteURL?) -> AbsoluteURL? {
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
