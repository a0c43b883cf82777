import HTTP
import Routing
package import URISyntax

/// Reads what a person asked to have downloaded from the arguments of a request.
extension DownloadOrder {
    /// Reads a request's arguments.
    ///
    /// - Parameters:
    ///   - query: of the request: `url`, the settings, and `h_<Name>` for the session's headers.
    ///   - origin: the origin's URL that a text means.
    /// - Throws: `StoreAdministration.Refusal` with what is wrong.
    package init(query: String, origin: (String) -> AbsoluteURL?) throws(StoreAdministration
        .Refusal)
    {
        let items = QueryItem.items(of: query)
        guard let text = items.first(where: { $0.rawName == "url" })?.value() else {
            throw .missing("url")
        }
        let split = PlayerHeaders.split(Array(text.utf8))
        let plain = split.map { String(decoding: $0.url, as: UTF8.self) } ?? text
        guard let url = origin(plain) else { throw .noURL }
        self.init(url: url)
        var entry = "/proxy?url=" + PercentCoding.queryComponent(url.text)
        for header in split?.headers ?? [] {
            entry += "&h_\(header.name)=\(PercentCoding.queryComponent(header.value))"
        }
        for item in items where item.rawName != "url" && item.rawName != "token" {
            if item.rawName.hasPrefix("h_") {
                entry += "&\(item.rawName)=\(item.rawValue ?? "")"
            } else if let fault = set(item.rawName, item.value()) {
                throw StoreAdministration.Refusal(status: .badRequest, reason: fault)
            }
        }
        // The same rules for headers as when a player starts.
        switch Router(mounts: []).route(RequestHead(method: .get, target: entry)) {
        case .entry(let entry): headers = entry.headers
        case .refused(let status, let reason):
            throw StoreAdministration.Refusal(status: status, reason: reason)
        default: throw .noURL
        }
    }
}
