/// Tokens and servers that change with every response for a playlist, as on some CDNs.
extension Behaviour.Rotation {
    /// The playlist with this turn's token in each URI, on URI lines and in attributes.
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
    /// The position of the first occurrence of a text; nil if there is none.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
