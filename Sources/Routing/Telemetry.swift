package import HTTP
package import URISyntax

/// Removes players' telemetry (CTA-5004, CMCD) from requests to origins: it differs in every
/// request, and would make each one a miss.
package enum Telemetry {
    private static let argument = Array("CMCD".utf8)
    private static let fieldPrefix = "cmcd-"

    /// Returns the URL without its CMCD argument.
    package static func stripped(_ url: AbsoluteURL) -> AbsoluteURL {
        guard url.hasQueryItem(startingWith: argument), let query = url.queryRange else {
            return url
        }
        let items = url.bytes[query].split(separator: 0x26, omittingEmptySubsequences: false)
        let kept = items.filter { $0.prefix { $0 != 0x3D } != argument[...] }
        guard kept.count < items.count else { return url }
        var bytes = Array(url.bytes[..<(query.lowerBound - 1)])
        if !kept.isEmpty { bytes += [0x3F] + Array(kept.joined(separator: [0x26])) }
        return (try? AbsoluteURL(bytes: bytes)) ?? url
    }

    /// Removes CMCD-Request, CMCD-Object, CMCD-Status and CMCD-Session.
    package static func strip(_ fields: inout Fields) {
        let names = fields.map(\.name).filter {
            ASCII.lowercased($0).hasPrefix(fieldPrefix)
        }
        for name in names { fields.remove(name) }
    }
}
