// Finds the mount of a path, in a time that does not grow with the number of mounts.

/// All mounts; immutable, replaced as a whole when the configuration is reloaded.
package struct MountTable: Sendable {
    /// The number of mounts.
    package var count: Int { byPath.count }

    private let byPath: [String: Mount]
    /// The lengths of their paths, longest first: a path is only cut at these.
    private let lengths: [Int]

    /// Makes the table; of mounts with the same path the first counts.
    package init(_ mounts: [Mount]) {
        byPath = Dictionary(mounts.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        lengths = Set(byPath.keys.map(\.utf8.count)).sorted(by: >)
    }

    /// All mounts, in no particular order.
    package var all: some Collection<Mount> { byPath.values }

    /// True if a mount has exactly this path.
    func hasMount(at path: String) -> Bool { byPath[path] != nil }

    /// Returns the mount with the longest path that `path` begins with; the cost grows with the
    /// number of lengths at which the path has a slash, not with the number of mounts.
    package func mount(for path: String) -> Mount? {
        let bytes = path.utf8
        let size = bytes.count
        for length in lengths where length <= size {
            let end = bytes.index(bytes.startIndex, offsetBy: length)
            guard bytes[bytes.index(before: end)] == 0x2F else { continue }
            if let mount = byPath[String(path[..<end])] { return mount }
        }
        return nil
    }
}
