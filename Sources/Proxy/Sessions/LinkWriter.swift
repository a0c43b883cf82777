/// Writes the URLs that go into playlists: `/<role>/<handle>/<name>.<ext>`.
package import HLS
package import Routing
package import URISyntax

/// Writes the links of one playlist for one session.
///
/// A class, because it remembers the beginning of the last link for the links after it.
package final class LinkWriter {
    private let session: SessionID
    private let prefix: [UInt8]
    private let sign: (([UInt8]) -> [UInt8])?
    private let handle: (AbsoluteURL, SessionID, Epoch) -> Handle
    // Read and replaced as a whole, so that accesses cannot overlap.
    @exclusivity(unchecked) private var folderLinks: FolderLinks?

    /// - Parameters:
    ///   - session: what the links belong to.
    ///   - prefix: what stands before each link: a base path, or scheme, host and base path.
    ///   - signer: signs the handles; nil when signing is off.
    ///   - handle: gives the handle of a URL, by name where it is long.
    package init(
        session: SessionID, prefix: String, signer: Signer?,
        handle: @escaping (AbsoluteURL, SessionID, Epoch) -> Handle
    ) {
        self.session = session
        self.prefix = Array(prefix.utf8)
        sign = signer.map { signer in { signer.sign($0) } }
        self.handle = handle
    }

    /// Appends the link to what a playlist names.
    ///
    /// `epoch` is the one that the name is in.
    package func append(
        _ reference: ResourceReference, in epoch: Epoch = .first, to output: inout [UInt8]
    ) {
        // A signature is over the whole handle, so that no two have a beginning in common.
        if case .joined(let url) = reference.place, sign == nil, url.count <= Handle.longestURL {
            append(url, reference, in: epoch, to: &output)
        } else {
            append(reference.url, reference, in: epoch, to: &output)
        }
    }

    /// The text of the handle alone.
    func handleText(of url: AbsoluteURL, for use: HandleUse) -> [UInt8] {
        var text: [UInt8] = []
        handle(url, session, .first).append(to: &text, for: use, sign: sign)
        return text
    }

    private func append(
        _ url: JoinedURL, _ reference: ResourceReference, in epoch: Epoch,
        to output: inout [UInt8]
    ) {
        if let folderLinks, folderLinks.fit(url, reference.role, epoch) {
            return folderLinks.append(url, hasMap: reference.hasMap, to: &output)
        }
        let links = FolderLinks(
            prefix: prefix, role: reference.role, session: session, epoch: epoch,
            folder: url.folder)
        links.append(url, hasMap: reference.hasMap, to: &output)
        folderLinks = links
    }

    private func append(
        _ url: AbsoluteURL, _ reference: ResourceReference, in epoch: Epoch,
        to output: inout [UInt8]
    ) {
        let role = reference.role
        output.append(contentsOf: prefix)
        output.append(0x2F)
        output.append(role.letter)
        output.append(0x2F)
        handle(url, session, epoch).append(to: &output, for: .link(role), sign: sign)
        output.append(0x2F)
        role.appendSafeFileName(for: url, hasMap: reference.hasMap, to: &output)
    }
}
