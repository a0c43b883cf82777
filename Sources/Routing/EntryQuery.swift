import HTTP
import URISyntax

/// The query of `/proxy?url=...`, as users and scripts write it.
enum EntryQuery {
    /// True for the value of `url` if it is not percent-encoded.
    static func isBareURL(_ raw: String) -> Bool {
        raw.hasPrefix("http://") || raw.hasPrefix("https://")
    }

    /// Returns the URL in the value of `url`.
    static func url(in raw: String) -> String {
        isBareURL(raw) && !hasEncodedQuery(raw) ? raw : PercentCoding.decode(raw)
    }

    /// True for a URL without `?` that has the encoded form of `?`, and of `=` behind it: some
    /// scripts encode a URL except for `:` and `/`.
    ///
    /// The encoded form of those two says that the path contains an encoded URL.
    private static func hasEncodedQuery(_ raw: String) -> Bool {
        let bytes = Array(raw.utf8)
        guard !bytes.contains(0x3F) else { return false }
        var isInQuery = false
        var hasArgument = false
        for index in bytes.indices.dropLast(2) where bytes[index] == ASCII.percent {
            switch (bytes[index + 1], bytes[index + 2]) {
            case (0x32, 0x46), (0x32, 0x66), (0x33, 0x41), (0x33, 0x61): return false
            case (0x33, 0x46), (0x33, 0x66): isInQuery = true
            case (0x33, 0x44), (0x33, 0x64): hasArgument = hasArgument || isInQuery
            default: break
            }
        }
        return hasArgument
    }

    /// Returns the items of a query.
    ///
    /// A `url` without percent-encoding keeps its own `&` arguments, up to one of the daemon's:
    /// users paste URLs unencoded. Linear in the query. With `keepsTokens`, an argument `token` is
    /// one of its own.
    static func items(of query: String, keepsTokens: Bool) -> [QueryItem] {
        var items: [QueryItem] = []
        // The further arguments of the last item, if that is such a URL.
        var arguments: String?
        for item in QueryItem.items(of: query) {
            let isOurs =
                item.rawName == "url" || EntryArguments.isName(item.rawName)
                || item.rawName.hasPrefix("h_")
                || (item.rawName == "token" && !keepsTokens)
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
