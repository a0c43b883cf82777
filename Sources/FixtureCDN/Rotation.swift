/// Tokens and servers that change with every reading of a playlist, as some CDNs give them.
extension Behaviour.Rotation {
    /// The playlist with the token of a turn in each URI, be it a line or an attribute.
    func text(_ playlist: String, turn: Int) -> String {
        var lines: [String] = []
        for line in playlist.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty {
                lines.append("")
            } else if !line.hasPrefix("#") {
                lines.append(uri(String(line), turn))
            } else if let start = line.range(of: "URI=\""),
                let end = line[start.upperBound...].firstIndex(of: "\"")
            {
                lines.append(
                    line[..<start.upperBound] + uri(String(line[start.upperBound..<end]), turn)
                        + line[end...])
            } else {
                lines.append(String(line))
            }
        }
        return lines.joined(separator: "\n")
    }

    private func uri(_ uri: String, _ turn: Int) -> String {
        switch self {
        case .query: return uri + (uri.contains("?") ? "&" : "?") + "token=t\(turn)"
        case .path:
            let name = uri.lastIndex(of: "/").map { uri.index(after: $0) } ?? uri.startIndex
            return uri[..<name] + "~t\(turn)/" + uri[name...]
        }
    }

    /// A path without the tokens that `rotate=path` puts into it.
    static func withoutTokens(_ path: String) -> String {
        guard path.contains("/~t") else { return path }
        return path.split(separator: "/", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix("~t") }.joined(separator: "/")
    }
}

extension Substring {
    /// Where a text stands; nil where it does not.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
