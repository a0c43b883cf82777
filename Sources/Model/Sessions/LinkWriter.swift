// Writes the URLs in rewritten playlists: `/<role>/<handle>/<name>.<ext>`, and for resources of
// live lists `/<role>/<handle of the list>/<place>.<ext>?u=<handle>`.
package import HLS
package import Routing
package import URISyntax

/// Writes the links of one playlist for one session.
///
/// A class, because it caches the beginning of the last link; all links of one live list come from
/// one writer.
package final class LinkWriter {
    private let session: SessionID
    private let prefix: [UInt8]
    private let sign: (([UInt8]) -> [UInt8])?
    private let isInFront: Bool
    /// Signs the handles of URLs with a stand-in; nil if there are none.
    private let signForUser: (([UInt8]) -> [UInt8])?
    /// True if some handles are signed.
    private let signs: Bool
    private let handle: (AbsoluteURL, SessionID, Epoch) -> Handle
    // Read and replaced as a whole, so that accesses cannot overlap.
    @exclusivity(unchecked) private var folderLinks: FolderLinks?
    /// The beginning of the last handle in a query.
    @exclusivity(unchecked) private var originLinks: FolderLinks?
    /// The beginning of the last link into the live list, with its role.
    @exclusivity(unchecked) private var listStem: ListStem?

    /// The common beginning of the links of one role into one live list.
    private struct ListStem {
        let role: ResourceRole
        /// Prefix, role and handle of the list.
        let bytes: [UInt8]
        /// The number of these bytes before the handle.
        let start: Int
    }

    /// - Parameters:
    ///   - session: the session of the links.
    ///   - prefix: the prefix of each link: a base path, or scheme, host and base path; behind it
    ///     the path of a sealed session, if the links carry one.
    ///   - signer: signs the handles; nil when signing is off.
    ///   - userSigner: signs those of URLs with a stand-in too; nil for a playlist whose own URL
    ///     has none, since it can name no URL with one.
    ///   - handle: makes the handle of a URL, by name if it is long.
    package init(
        session: SessionID, prefix: String, signer: Signer?, userSigner: Signer?,
        handle: @escaping (AbsoluteURL, SessionID, Epoch) -> Handle
    ) {
        self.session = session
        self.prefix = Array(prefix.utf8)
        sign = signer.map { signer in { signer.sign($0) } }
        isInFront = signer?.isInFront ?? false
        signForUser = userSigner.map { user in { user.sign($0, with: signer) } }
        signs = signer != nil || userSigner != nil
        self.handle = handle
    }

    private init(_ other: LinkWriter, prefix: String) {
        session = other.session
        self.prefix = Array(prefix.utf8)
        sign = other.sign
        isInFront = other.isInFront
        signForUser = other.signForUser
        signs = other.signs
        handle = other.handle
    }

    /// Returns a writer of the same links behind another prefix.
    package func links(behind prefix: String) -> LinkWriter {
        LinkWriter(self, prefix: prefix)
    }

    /// Appends the link to a resource of a playlist.
    ///
    /// `epoch` is the current epoch of its name.
    package func append(
        _ reference: ResourceReference, in epoch: Epoch = .first, to output: inout [UInt8]
    ) {
        // A signature covers the whole handle, so signed links have no common beginning.
        if case .joined(let url) = reference.place, !signs, url.count <= Handle.longestURL {
            append(url, reference, in: epoch, to: &output)
        } else {
            append(reference.url, reference, in: epoch, to: &output)
        }
    }

    /// Appends the link to a place in a live list.
    ///
    /// - Parameters:
    ///   - reference: the resource that is there now.
    ///   - place: the place.
    ///   - list: the list's name and epoch.
    ///   - epoch: the epoch of the resource's name.
    ///   - output: the buffer to append to.
    package func append(
        _ reference: ResourceReference, at place: LivePlace,
        of list: (name: UInt64, epoch: Epoch), in epoch: Epoch, to output: inout [UInt8]
    ) {
        let role = reference.role
        let stem = stem(of: list, role)
        let handleStart = output.count + stem.start
        output.append(contentsOf: stem.bytes)
        output.append(0x2F)
        place.append(to: &output)
        let pathEnd = output.count
        if case .joined(let url) = reference.place {
            role.appendExtension(
                for: url, in: url.folder.document, hasMap: reference.hasMap, to: &output)
            if !signs, url.count <= Handle.longestURL {
                return appendOrigin(url, role, in: epoch, to: &output)
            }
        } else {
            role.appendExtension(for: reference.url, hasMap: reference.hasMap, to: &output)
        }
        let path = signs ? Array(output[handleStart..<pathEnd]) : []
        output.append(contentsOf: Self.originStart)
        appendHandle(of: reference.url, for: .origin(role, path: path), in: epoch, to: &output)
    }

    private static let originStart = Array("?\(LivePlace.argument)=".utf8)

    private func appendOrigin(
        _ url: JoinedURL, _ role: ResourceRole, in epoch: Epoch, to output: inout [UInt8]
    ) {
        if let originLinks, originLinks.fit(url, role, epoch) {
            return originLinks.appendHandle(of: url, to: &output)
        }
        let links = FolderLinks(
            start: Self.originStart, role: role, session: session, epoch: epoch,
            folder: url.folder)
        links.appendHandle(of: url, to: &output)
        originLinks = links
    }

    private func stem(of list: (name: UInt64, epoch: Epoch), _ role: ResourceRole) -> ListStem {
        if let listStem, listStem.role == role { return listStem }
        var bytes = prefix + [0x2F, role.letter, 0x2F]
        let start = bytes.count
        Handle(session: session, target: .list(list.name), epoch: list.epoch)
            .append(to: &bytes, for: .link(role), sign: sign, isInFront: isInFront)
        let made = ListStem(role: role, bytes: bytes, start: start)
        listStem = made
        return made
    }

    /// Returns the text of the handle alone, for a name in an epoch.
    package func handleText(
        of url: AbsoluteURL, for use: HandleUse, in epoch: Epoch = .first
    ) -> [UInt8] {
        var text: [UInt8] = []
        appendHandle(of: url, for: use, in: epoch, to: &text)
        return text
    }

    private func appendHandle(
        of url: AbsoluteURL, for use: HandleUse, in epoch: Epoch, to output: inout [UInt8]
    ) {
        let made = handle(url, session, epoch)
        if let signForUser, url.hasStandIn {
            made.append(to: &output, for: use, sign: signForUser, isForUser: true)
        } else {
            made.append(to: &output, for: use, sign: sign, isInFront: isInFront)
        }
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

    /// Appends the link to a URL in place of the one that a reference names.
    package func append(
        _ url: AbsoluteURL, _ reference: ResourceReference, in epoch: Epoch,
        to output: inout [UInt8]
    ) {
        let role = reference.role
        output.append(contentsOf: prefix)
        output.append(0x2F)
        output.append(role.letter)
        output.append(0x2F)
        appendHandle(of: url, for: .link(role), in: epoch, to: &output)
        output.append(0x2F)
        role.appendSafeFileName(for: url, hasMap: reference.hasMap, to: &output)
    }
}
