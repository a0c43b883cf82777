// The user information of mounts: who makes keys and requests looks up here what a stand-in means.
package import Routing
import Store
import Synchronization
package import URISyntax

/// The user information of mounts by the stand-ins of their URLs.
///
/// Any thread may use it.
package final class MountUsers: Sendable {
    private struct User {
        let origin: Origin
        let userinfo: String
    }

    private let users = Mutex<[String: User]>([:])

    init() {}

    /// Replaces the mounts for keys and requests from now on; of mounts with the same path the first
    /// counts.
    package func replace(_ mounts: [Mount]) {
        users.withLock { users in
            users = [:]
            for mount in mounts {
                guard let standIn = mount.origin.userinfo, let userinfo = mount.userinfo,
                    users[standIn] == nil
                else { continue }
                users[standIn] = User(origin: mount.origin.origin, userinfo: userinfo)
            }
        }
    }

    /// Returns the user information that a URL is requested with, a mount's for its stand-in; nil for
    /// none, and for a stand-in in a URL of another origin.
    package func userinfo(of url: AbsoluteURL) -> String? {
        guard let given = url.userinfo, url.hasStandIn else { return url.userinfo }
        let user = users.withLock { $0[given] }
        return user?.origin == url.origin ? user?.userinfo : nil
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
