// The user information and header fields of mounts. URLs contain a stand-in for them; the makers of
// keys and requests look up here what the stand-in means.
import HLS
package import HTTP
package import Routing
import Store
import Synchronization
package import URISyntax

/// The user information and header fields of one mount.
///
/// A resource keeps it from the making of its key to the last request for it: a reload in between
/// changes neither.
package final class MountUser: Sendable {
    /// The user information of the URLs.
    private let standIn: String
    fileprivate let origin: Origin
    /// Nil for a mount that has header fields only.
    fileprivate let userinfo: String?
    private let ownFields: Fields
    /// See `Mount.secret`.
    fileprivate let secret: String
    /// Signs the links to URLs with the stand-in: without a signature, anyone could write such a
    /// link.
    fileprivate let signer: Signer
    /// The digest that stands for the user information and header fields in cache keys.
    package let digest: String

    fileprivate init(_ mount: Mount, standIn: String, secret: String, signer: Signer) {
        self.standIn = standIn
        origin = mount.origin.origin
        userinfo = mount.userinfo
        var fields = Fields()
        for header in mount.headers { fields.append(header.name, header.value) }
        ownFields = fields
        self.secret = secret
        self.signer = signer
        digest = Self.digest(of: secret)
    }

    /// Returns the digest that stands for user information, or for `Mount.secret`, in cache keys.
    static func digest(of secret: String) -> String {
        SessionID(digest: SHA256Digest.of("userinfo " + secret)).text
    }

    /// True if a URL has this mount's stand-in, and its origin.
    func isMeant(by url: AbsoluteURL) -> Bool {
        url.userinfo == standIn && url.origin == origin
    }

    /// Returns the header fields that a request for a URL has besides; none if the URL has not this
    /// mount's stand-in and origin.
    package func fields(for url: AbsoluteURL) -> Fields {
        ownFields.isEmpty || !isMeant(by: url) ? Fields() : ownFields
    }

    /// True if requests have header fields of the mount, so that only its origin is asked.
    var hasFields: Bool { !ownFields.isEmpty }

    /// Removes the client's fields that those of the mount replace at its origin, so that no
    /// response seems to depend on them.
    package func removeReplaced(from forwarded: inout Fields) {
        for (name, _) in ownFields { forwarded.remove(name) }
    }
}

extension AbsoluteURL {
    /// Returns the URL to send a request to: a stand-in is replaced by the user information of
    /// `user`, or removed if it does not stand for that.
    package func authorized(as user: MountUser?) -> AbsoluteURL {
        guard hasStandIn else { return self }
        guard let user, user.isMeant(by: self), let userinfo = user.userinfo,
            let full = try? replacingUserinfo(with: Array(userinfo.utf8))
        else { return withoutUserinfo }
        return full
    }
}

/// The user information and header fields of mounts by the stand-ins of their URLs.
///
/// Any thread may use it.
package final class MountUsers: Sendable {
    private struct Account: Hashable {
        let origin: Origin
        let secret: String
    }

    private let users = Mutex<[String: MountUser]>([:])
    private let given = Atomic<Bool>(false)

    init() {}

    /// True if any mount has user information or header fields; costs one atomic load.
    package var areGiven: Bool { given.load(ordering: .relaxed) }

    /// Replaces the mounts for resources made from now on; of several mounts with the same path,
    /// the first counts.
    package func replace(_ mounts: [Mount]) {
        // Making a signer takes milliseconds, in which no other thread shall wait for the lock.
        let former = users.withLock { $0 }
        var signers = Dictionary(
            former.values.map {
                (Account(origin: $0.origin, secret: $0.secret), $0.signer)
            }, uniquingKeysWith: { first, _ in first })
        var made: [String: MountUser] = [:]
        for mount in mounts {
            guard let standIn = mount.origin.userinfo, let secret = mount.secret,
                made[standIn] == nil
            else { continue }
            let account = Account(origin: mount.origin.origin, secret: secret)
            let signer =
                signers[account] ?? Signer(secret: secret, origin: account.origin.description)
            signers[account] = signer
            made[standIn] = MountUser(mount, standIn: standIn, secret: secret, signer: signer)
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
