import HTTP
import Routing
package import URISyntax

/// Parsing of a download order from the arguments of a request.
extension DownloadOrder {
    /// Parses a request's arguments.
    ///
    /// - Parameters:
    ///   - query: the query of the request: `url`, the settings, and `h_<Name>` for the session's
    ///     headers. A repeated setting that takes a list adds to it.
    ///   - origin: returns the origin URL that a text names.
    /// - Throws: `AdministrationRefusal` with the fault.
    package init(
        query: String, origin: (String) -> AbsoluteURL?
    ) throws(AdministrationRefusal) {
        let items = QueryItem.items(of: query)
        guard let text = items.first(where: { $0.rawName == "url" })?.value() else {
            throw .missing("url")
        }
        let (plain, given) = PlayerHeaders.cut(text)
        guard let url = origin(plain) else { throw .noURL }
        self.init(url: url)
        // Only its headers are read; a mount's URL has a stand-in, which no entry may have.
        var entry = "/proxy?url=" + PercentCoding.queryComponent(url.withoutUserinfo.text)
        for header in given {
            entry += "&h_\(header.name)=\(PercentCoding.queryComponent(header.value))"
        }
        var lists: [String: [String]] = [:]
        for item in items where item.rawName != "url" && item.rawName != "token" {
            if item.rawName.hasPrefix("h_") {
                entry += "&\(item.rawName)=\(item.rawValue ?? "")"
            } else if Self.lists.contains(item.rawName) {
                lists[item.rawName, default: []].append(item.value())
            } else if let fault = set(item.rawName, item.value()) {
                throw AdministrationRefusal(.badRequest, fault)
            }
        }
        for name in Self.lists {
            guard let values = lists[name] else { continue }
            if let fault = set(name, values.joined(separator: ",")) {
                throw AdministrationRefusal(.badRequest, fault)
            }
        }
        // Applies the same rules to headers as when a player starts.
        switch Router(mounts: []).route(RequestHead(method: .get, target: entry)) {
        case .entry(let entry): headers = entry.headers
        case .refused(let status, let reason): throw AdministrationRefusal(status, reason)
        default: throw .noURL
        }
    }
}
