import HTTP
import Model
import URISyntax

/// Scheme and host by which a client reaches this daemon: those that a proxy in front states, if
/// its fields are trusted.
struct OwnOrigin: Equatable {
    let scheme: String
    /// With the port; nil for a request without a host.
    let host: String?

    /// - Parameters:
    ///   - request: names the host.
    ///   - isEncrypted: true for a connection over TLS.
    ///   - settings: whether fields of a proxy in front are trusted.
    init(_ request: RequestHead, isEncrypted: Bool, _ settings: ProxySettings) {
        let isForwarded =
            settings.trustsForwarded && Self.stated(.xForwardedProto, by: request) == "https"
        scheme = isEncrypted || isForwarded ? "https" : "http"
        host = Self.host(request, settings)
    }

    /// Returns the host alone.
    static func host(_ request: RequestHead, _ settings: ProxySettings) -> String? {
        if settings.trustsForwarded, let forwarded = stated(.xForwardedHost, by: request),
            isHost(forwarded)
        {
            return forwarded
        }
        return request.host.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns what the outermost proxy states in a field; nil without the field.
    ///
    /// Each proxy of a chain may append what it received itself, so that the first value is that of the
    /// player's own request.
    private static func stated(_ name: FieldName, by request: RequestHead) -> String? {
        guard let value = request.fields.first(name) else { return nil }
        guard let end = value.firstIndex(of: ",") else { return value }
        return String(value[..<end].filter { $0 != " " && $0 != "\t" })
    }

    private static func isHost(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { PercentCoding.Allowed.host.contains($0) || $0 == 0x3A }
    }
}
