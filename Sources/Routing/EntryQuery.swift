import HTTP

/// The query of `/proxy?url=...`, as users and scripts write it.
enum EntryQuery {
    /// True for the value of `url` if it is not percent-encoded.
    static func isBareURL(_ raw: String) -> Bool {
        raw.hasPrefix("http://") || raw.hasPrefix("https://")
    }

    /// Returns the items of a query.
    ///
    /// A `url` without percent-encoding keeps its own `&` arguments, up to one of the daemon's:
    /// users paste URLs unencoded. Linear in the query.
    static func items(of query: String) -> [QueryItem] {
        var items: [QueryItem] = []
        // The further arguments of the last item, if that is such a URL.
        var arguments: String?
        for item in QueryItem.items(of: query) {
            let isOurs =
                ["url", "token", "dvr"].contains(item.rawName) || item.rawName.hasPrefix("h_")
            guard isOurs || arguments == nil else {
                arguments?.append("&\(item.text)")
                continue
            }
            add(arguments, to: &items)
            let value = item.rawName == "url" ? item.rawValue ?? "" : ""
            arguments = isBareURL(value) && value.contains("?") ? "" : nil
            items.append(item)
        }
        add(arguments, to: &items)
        return items
    }

    private static func add(_ arguments: String?, to items: inout [QueryItem]) {
        guard let arguments, !arguments.isEmpty, let last = items.popLast() else { return }
        items.append(
            QueryItem(rawName: last.rawName, rawValue: (last.rawValue ?? "") + arguments))
    }
}
