// Checks of every response to a player: it may contain only bytes that the CDN had.

/// The oracles about one response.
struct Checks {
    let world: World
    let cdn: SimulatedCDN

    /// The requested range.
    enum Asked {
        case whole
        case range(first: Int, last: Int?)

        /// A range of bytes; nil for the whole.
        init(_ range: Range<Int>?) {
            guard let range else {
                self = .whole
                return
            }
            self = .range(first: range.lowerBound, last: range.upperBound - 1)
        }

        /// The field that requests it; none for the whole.
        var fields: [(String, String)] {
            guard case .range(let first, let last) = self else { return [] }
            return [("Range", "bytes=\(first)-\(last.map(String.init) ?? "")")]
        }
    }

    /// Checks a response for a file against all versions of the file.
    ///
    /// - Returns: true if the player has got what it requested.
    func media(_ path: String, _ asked: Asked, _ response: PlayerResponse) -> Bool {
        guard let file = cdn.file(path) else { return false }
        switch response.status {
        case 200: return whole(file, response)
        case 206: return part(file, asked, response)
        case 416: return unsatisfiable(file, asked)
        case 0, 404, 403, 410, 429, 500...504: return false
        // The head waits for the first bytes, which show whether they are a page: on a disk without
        // a free byte they cannot be passed on.
        case 507 where world.isDiskBad || world.now - world.lastDiskFault < 30 * World.second:
            return false
        default:
            world.fault(.status, "\(path): status \(response.status)")
            return false
        }
    }

    private func fits(_ file: OriginFile, _ response: PlayerResponse, from first: Int) -> OriginFile
        .Version?
    {
        let tag = response.first("etag")
        return file.versions.last { version in
            guard first + response.body.count <= version.size else { return false }
            // The daemon generates a tag if the CDN sent none.
            if let tag, !tag.hasPrefix("\"sluice-"), let own = file.tag(version), tag != own {
                return false
            }
            return file.bytes(first..<first + response.body.count, of: version) == response.body
        }
    }

    private func whole(_ file: OriginFile, _ response: PlayerResponse) -> Bool {
        guard let version = fits(file, response, from: 0) else {
            world.fault(
                .bytes,
                "\(file.path): \(response.body.count) bytes with the tag \(response.first("etag") ?? "none") are of no version"
            )
            return false
        }
        guard response.isWhole else { return false }
        if response.body.count != version.size {
            let isOther = file.versions.contains { $0.size == response.body.count }
            if !isOther {
                world.fault(
                    .lengths,
                    "\(file.path): \(response.body.count) bytes were said to be all of \(version.size)"
                )
            }
        }
        return true
    }

    private func part(
        _ file: OriginFile, _ asked: Asked, _ response: PlayerResponse
    ) -> Bool {
        guard case .range(let first, let last) = asked else {
            world.fault(.status, "\(file.path): 206 where no range was asked for")
            return false
        }
        let words = (response.first("content-range") ?? "").split { " -/".contains($0) }
        guard words.count == 4, let from = Int(words[1]), let to = Int(words[2]) else {
            world.fault(
                .status, "\(file.path): Content-Range \(response.first("content-range") ?? "none")")
            return false
        }
        let total = Int(words[3])
        // A growing resource has no end yet (RFC 8673 section 2.2).
        let isOpen = total == nil && to == 1 << 53 - 1
        guard from == first, to <= last ?? .max, from <= to else {
            world.fault(
                .status, "\(file.path): asked for \(first)-\(last ?? -1), answered \(from)-\(to)")
            return false
        }
        guard let version = fits(file, response, from: from) else {
            world.fault(.bytes, "\(file.path): bytes \(from)-\(to) are of no version")
            return false
        }
        if let total, !file.versions.contains(where: { $0.size == total }) {
            world.fault(.lengths, "\(file.path): a total of \(total), and no version has it")
        }
        guard response.isWhole else { return false }
        if isOpen { return true }
        if response.body.count != to - from + 1 {
            world.fault(.lengths, "\(file.path): \(response.body.count) bytes for \(from)-\(to)")
        }
        if last == nil, to + 1 != version.size, total != nil,
            !file.versions.contains(where: { $0.size == to + 1 })
        {
            world.fault(.lengths, "\(file.path): an open range ends at \(to) of \(version.size)")
        }
        return true
    }

    private func unsatisfiable(_ file: OriginFile, _ asked: Asked) -> Bool {
        guard case .range(let first, _) = asked else {
            world.fault(.status, "\(file.path): 416 where no range was asked for")
            return false
        }
        if !file.versions.contains(where: { first >= $0.size }) {
            world.fault(.status, "\(file.path): 416 for \(first), which every version has")
        }
        return false
    }
}
