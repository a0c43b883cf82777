import CPSL

/// Domains under which anybody can register names: the Public Suffix List.
package enum PublicSuffix {
    /// The list of the system's package where it is newer than the one built into libpsl.
    ///
    /// Safe to share: libpsl only reads a list once it is loaded, and this one is never freed.
    private nonisolated(unsafe) static let list: OpaquePointer? = psl_latest(nil)

    /// Whether `domain` is a public suffix, such as `co.uk` or `cloudfront.net`, so that two hosts
    /// below it may belong to strangers.
    ///
    /// `domain` is in lower case and ASCII, with no dot at its ends. A single label always is one.
    /// The first call reads a file of about 40 kB; later calls never block. Without any list every
    /// domain counts as one, so that no cookie is shared between hosts.
    package static func contains(_ domain: String) -> Bool {
        guard let list else { return true }
        return psl_is_public_suffix(list, domain) != 0
    }
}
