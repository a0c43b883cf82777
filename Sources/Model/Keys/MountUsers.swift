// The user information of mounts. URLs contain a stand-in for it; the makers of keys and requests
// look up here what the stand-in means.
import HLS
package import Routing
import Store
import Synchronization
package import URISyntax

/// The user information of one mount.
///
/// A resource keeps it from the making of its key to the last request for it: a reload in between
/// changes neither.
package final class MountUser: Sendable {
    /// The user information of the URLs.
    private let standIn: String
    fileprivate let origin: Origin
    fileprivate let userinfo: String
    /// Signs the links to URLs with the stand-in: without a signature, anyone could write such a
    /// link.
    fileprivate let signer: Signer
    /// The digest that stands for the user information in cache keys.
    package let digest: String

    fileprivate init(standIn: String, origin: Origin, userinfo: String, signer: Signer) {
        self.standIn = standIn
        self.origin = origin
        self.userinfo = userinfo
        self.signer = signer
        digest = Self.digest(of: userinfo)
    }

    /// Returns the digest that stands for user information in cache keys.
    static func digest(of userinfo: String) -> String {
        SessionID(digest: SHA256Digest.of("userinfo " + userinfo)).text
    }

    /// True if a URL has this mount's stand-in, and its origin.
    func isMeant(by url: AbsoluteURL) -> Bool {
        url.userinfo == standIn && url.origin == origin
    }
}

extension AbsoluteURL {
    /// Returns the URL to send a request to: a stand-in is replaced by the user information of
    /// `user`, or removed if it does not stand for that.
    package func authorized(as user: MountUser?) -> AbsoluteURL {
        guard hasStandIn else { return self }
        guard let user, user.isMeant(by: self),
            let full = try? replacingUserinfo(with: Array(user.userinfo.utf8))
        else { return withoutUserinfo }
        return full
    }
}

/// The user information of mounts by the stand-ins of their URLs.
///
/// Any thread may use it.
package final class MountUsers: Sendable {
    private struct Account: Hashable {
        let origin: Origin
        let userinfo: String
    }

    private let users = Mutex<[String: MountUser]>([:])
    private let given = Atomic<Bool>(false)

    init() {}

    /// True if any mount has user information; costs one atomic load.
    package var areGiven: Bool { given.load(ordering: .relaxed) }

    /// Replaces the mounts for resources made from now on; of several mounts with the same path,
    /// the first counts.
    package func replace(_ mounts: [Mount]) {
        // Making a signer takes milliseconds, in which no other thread shall wait for the lock.
        let former = users.withLock { $0 }
        var signers = Dictionary(
            former.values.map {
                (Account(origin: $0.origin, userinfo: $0.userinfo), $0.signer)
            }, uniquingKeysWith: { first, _ in first })
        var made: [String: MountUser] = [:]
        for mount in mounts {
            guard let standIn = mount.origin.userinfo, let userinfo = mount.userinfo,
                made[standIn] == nil
            else { continue }
            let account = Account(origin: mount.origin.origin, userinfo: userinfo)
            let signer =
                signers[account]
                ?? Signer(userinfo: userinfo, origin: account.origin.description)
            signers[account] = signer
            made[standIn] = MountUser(
                standIn: standIn, origin: account.origin, userinfo: userinfo, signer: signer)
        }
        let replacement = made
        users.withLock { $0 = replacement }
        given.store(!replacement.isEmpty, ordering: .relaxed)
    }

    /// Returns the signer of links to a URL with a stand-in, used together with the signer of other
    /// links; nil for other URLs, and for an unknown stand-in.
    package func signer(of url: AbsoluteURL) -> Signer? { user(of: url)?.signer }

    /// Returns the mount user that a URL's stand-in names; nil without a stand-in, and for a URL of
    /// another origin.
    package func user(of url: AbsoluteURL) -> MountUser? {
        guard url.hasStandIn, let given = url.userinfo else { return nil }
        let user = users.withLock { $0[given] }
        return user?.origin == url.origin ? user : nil
    }

    /// Returns the URL to send a request to, by the mounts as they are now.
    package func authorized(_ url: AbsoluteURL) -> AbsoluteURL {
        url.authorized(as: user(of: url))
    }
}

extension KeyTable {
    /// Returns the digest that stands for a URL's user information in cache keys; nil without any.
    package func user(of url: AbsoluteURL) -> String? {
        user(of: url, as: mountUsers.user(of: url))
    }

    /// Returns the digest for a URL whose mount user is already known.
    func user(of url: AbsoluteURL, as mountUser: MountUser?) -> String? {
        guard url.hasStandIn else { return url.userinfo.map { MountUser.digest(of: $0) } }
        return mountUser?.digest
    }

    /// Returns the digest of the user information that a resource is requested with.
    package func user(of resource: Resource) -> String? {
        user(of: resource.url, as: resource.mountUser)
    }

    /// Returns what is stored with the response for a resource to tell whose credentials its
    /// request had; nil without any.
    ///
    /// Who may have a key is decided by the session that fetched it; only the user information of
    /// its URL must be stored.
    package func credentials(of resource: Resource) -> String? {
        let user = user(of: resource)
        return resource.role == .key ? user : resource.session.credentials(user)
    }
}
