// The playlists that `sluice inspect` reads: the first and those that it names.
import HLS
import URISyntax

/// One playlist of the tree.
struct InspectNode {
    /// The entry of the parent playlist; nil for the first one.
    let entry: PlaylistOutline.Entry?
    let url: AbsoluteURL
    /// The outline, or why there is none.
    let result: Result<PlaylistOutline, InspectFailure>
    var children: [InspectNode] = []

    /// True if the playlist could not be read.
    var isUnread: Bool {
        if case .failure = result { true } else { false }
    }
}

/// Reads each URL once, at most `limit` of them, and no deeper than playlists can be nested.
struct InspectTree {
    let loader: InspectLoader
    let limit: Int
    private var known: Set<AbsoluteURL> = []
    /// The number of violations of mandatory rules, in all playlists.
    private(set) var mustCount = 0
    /// True if there were more playlists than the limit.
    private(set) var isCut = false

    init(loader: InspectLoader, limit: Int) {
        self.loader = loader
        self.limit = limit
    }

    /// Reads the first playlist and those it names; blocks.
    mutating func read(_ url: AbsoluteURL) -> InspectNode {
        var root = node(url, nil, variables: [:])
        guard case .success(let outline) = root.result else { return root }
        for entry in outline.entries {
            guard let child = entry.url, entry.kind.isPlaylist else { continue }
            guard !known.contains(child) else { continue }
            guard known.count < limit else {
                isCut = true
                break
            }
            root.children.append(node(child, entry, variables: outline.definedVariables))
        }
        return root
    }

    private mutating func node(
        _ url: AbsoluteURL, _ entry: PlaylistOutline.Entry?, variables: [String: String]
    ) -> InspectNode {
        known.insert(url)
        let result = loader.load(url).flatMap { answer -> Result<PlaylistOutline, InspectFailure> in
            do throws(PlaylistError) {
                return .success(
                    try PlaylistOutline(answer.body, base: answer.url, variables: variables))
            } catch {
                return .failure(InspectFailure(text: error.reason))
            }
        }
        if case .success(let outline) = result {
            mustCount += outline.violations.count { $0.level == .must }
        }
        return InspectNode(entry: entry, url: url, result: result)
    }
}
