// Writes the links to resources of one folder, encoding their common beginning once.
package import HLS
package import URISyntax

/// The common beginning of unsigned handles of the resources of one folder.
///
///     start · text of the handle, as far as it consists of whole groups of three bytes
package final class FolderLinks: Sendable {
    private let folder: URLFolder
    private let role: ResourceRole
    private let epoch: Epoch
    private let stem: [UInt8]
    /// The bytes of the handle's beginning that do not fill a group yet.
    private let carry: Base64URL.Carry

    /// Makes the beginning of handles that follow `start`.
    package init(
        start: [UInt8], role: ResourceRole, session: SessionID, epoch: Epoch, folder: URLFolder
    ) {
        self.folder = folder
        self.role = role
        self.epoch = epoch
        let bytes = Handle.start(
            of: folder.bytes, scheme: folder.member.scheme, session: session, epoch: epoch)
        var stem = start
        Base64URL.append(Array(bytes.dropLast(bytes.count % 3)), to: &stem)
        self.stem = stem
        carry = Base64URL.Carry(of: bytes)
    }

    /// Makes links of the form `/<role>/<handle>/<name>` after `prefix`: a base path, or scheme,
    /// host and base path.
    package convenience init(
        prefix: [UInt8], role: ResourceRole, session: SessionID, epoch: Epoch, folder: URLFolder
    ) {
        self.init(
            start: prefix + [0x2F, role.letter, 0x2F], role: role, session: session, epoch: epoch,
            folder: folder)
    }

    /// True if these are the links of this role and epoch to this folder.
    package func fit(_ url: JoinedURL, _ role: ResourceRole, _ epoch: Epoch) -> Bool {
        url.folder === folder && role == self.role && epoch == self.epoch
    }

    /// Appends the link to `url`, which fits and is no longer than a handle holds.
    package func append(_ url: JoinedURL, hasMap: Bool, to output: inout [UInt8]) {
        appendHandle(of: url, to: &output)
        output.append(0x2F)
        role.appendSafeFileName(for: url, in: folder.document, hasMap: hasMap, to: &output)
    }

    /// Appends the start and the handle of `url`.
    package func appendHandle(of url: JoinedURL, to output: inout [UInt8]) {
        output.append(contentsOf: stem)
        let document = folder.document
        Base64URL.append(document.span.extracting(url.rest), after: carry, to: &output)
    }
}
