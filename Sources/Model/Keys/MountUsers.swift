// The user information of mounts: who makes keys and requests looks up here what a stand-in means.
package import Routing
import Store
import Synchronization
package import URISyntax

/// The user information of mounts by the stand-ins of their URLs.
///
/// Any thread may use it.
package final class MountUsers: Sendable {
    private struct Account: Hashable {
        let origin: Origin
        let userinfo: String
    }

    private struct User {
        let account: Account
        /// Signs the links to URLs with the stand-in: they would be open to whoever writes one.
        let signer: Signer
    }

    private let users = Mutex<[String: User]>([:])

    init() {}

    /// Replaces the mounts for keys and requests from now on; of mounts with the same path the first
    /// counts.
    package func replace(_ mounts: [Mount]) {
        // Making a signer takes milliseconds, in which no other thread shall wait for the lock.
        let former = users.withLock { $0 }
        var signers = Dictionary(
            former.values.map { ($0.account, $0.signer) }, uniquingKeysWith: { first, _ in first })
        var made: [String: User] = [:]
        for mount in mounts {
            guard let standIn = mount.origin.userinfo, let userinfo = mount.userinfo,
                made[standIn] == nil
            else { continue }
            let account = Account(origin: mount.origin.origin, userinfo: userinfo)
            let signer =
                signers[account]
                ?? Signer(userinfo: userinfo, origin: account.origin.description)
            signers[account] = signer
            made[standIn] = User(account: account, signer: signer)
        }
        let replacement = made
        users.withLock { $0 = replacement }
    }

    /// Returns the user information that a URL is requested with, a mount's for its stand-in; nil for
    /// none, and for a stand-in in a URL of another origin.
    package func userinfo(of url: AbsoluteURL) -> String? {
        url.hasStandIn ? user(of: url)?.account.userinfo : url.userinfo
    }

    /// Returns what signs links to a URL with a stand-in, together with the key of other links; nil
    /// for other URLs, and for a stand-in that stands for nothing.
    package func signer(of url: AbsoluteURL) -> Signer? { user(of: url)?.signer }

    private func user(of url: AbsoluteURL) -> User? {
        guard url.hasStandIn, let given = url.userinfo else { return nil }
        let user = users.withLock { $0[given] }
        return user?.account.origin == url.origin ? user : nil
    }

    /// Returns the URL that a request is made with: that with a stand-in, with what it stands for.
    package func authorized(_ url: AbsoluteURL) -> AbsoluteURL {
        guard url.hasStandIn else { return url }
        guard let userinfo = userinfo(of: url),
            let full = try? url.replacingUserinfo(with: Array(userinfo.utf8))
        else { return url.withoutUserinfo }
        return full
    }
}

extension KeyTable {
    /// Returns what stands for a URL's user information in keys, a digest; nil without any.
    package func user(of url: AbsoluteURL) -> String? {
        mountUsers.userinfo(of: url).map {
            SessionID(digest: SHA256Digest.of("userinfo " + $0)).text
        }
    }
}
