/// Writes the URLs that go into playlists: `/<role>/<handle>/<name>.<ext>`.
package import HLS
package import Routing
package import URISyntax

/// Writes the links of one playlist for one session.
package struct LinkWriter {
    private let session: SessionID
    private let prefix: [UInt8]
    private let sign: (([UInt8]) -> [UInt8])?
    private let handle: (AbsoluteURL, SessionID) -> Handle

    /// - Parameters:
    ///   - session: what the links belong to.
    ///   - prefix: what stands before each link: a base path, or scheme, host and base path.
    ///   - signer: signs the handles; nil when signing is off.
    ///   - handle: gives the handle of a URL, by name where it is long.
    package init(
        session: SessionID, prefix: String, signer: Signer?,
        handle: @escaping (AbsoluteURL, SessionID) -> Handle
    ) {
        self.session = session
        self.prefix = Array(prefix.utf8)
        sign = signer.map { signer in { signer.sign($0) } }
        self.handle = handle
    }

    /// Appends the link to a resource.
    package func append(
        _ url: AbsoluteURL, role: ResourceRole, hasMap: Bool, to output: inout [UInt8]
    ) {
        output.append(contentsOf: prefix)
        output.append(0x2F)
        output.append(role.letter)
        output.append(0x2F)
        handle(url, session).append(to: &output, sign: sign)
        output.append(0x2F)
        role.appendSafeFileName(for: url, hasMap: hasMap, to: &output)
    }
}
