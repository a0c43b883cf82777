import CachePolicy
import HTTP
import Model
import Origin
import Posix
import Routing
import Store
import URISyntax

/// Invalidation after unsafe requests: stored responses of the target URL and of those that the
/// response names (RFC 9111 section 4.4).
extension ProxyCore {
    /// Invalidates after a response to `method`, if that is unsafe and the response is not an
    /// error; may block on the disk.
    ///
    /// - Parameters:
    ///   - method: the method of the request; unknown ones count as unsafe.
    ///   - status: the status of the response.
    ///   - fields: the fields of the response, as the origin sent them.
    ///   - url: the target URL at the origin.
    func invalidate(
        after method: HTTPMethod, _ status: HTTPStatus, _ fields: Fields, url: AbsoluteURL
    ) {
        guard !method.isSafe, (200..<400).contains(status.rawValue) else { return }
        invalidate(url)
        for name: FieldName in [.location, .contentLocation] {
            guard let text = fields.first(name),
                let named = try? URLResolver(base: url.withoutUserinfo).resolve(text),
                // Responses of another origin must not be invalidated.
                named.origin == url.origin, named.text != url.text
            else { continue }
            invalidate(named)
        }
    }

    /// Removes all variants of a mounted URL from the store, and has parents asked past theirs;
    /// bodies being sent are completed, and responses being fetched are not stored.
    func invalidate(_ url: AbsoluteURL) {
        let key = CacheKey(url: keys.key(of: url, in: KeyPlace(isMounted: true)).text)
        // Parents did not see the request. Noted before anything is removed, so that no parent's
        // copy is stored again.
        origins.parents.noteWritten(key.url, now: .now())
        store.remove(ObjectKey(key))
        var outdated: Set<CacheKey> = [key]
        for user in users(of: url) {
            let used = key.changing { $0.user = user }
            outdated.insert(used)
            store.remove(ObjectKey(used))
            for kind in CacheKind.allCases {
                for audience in [CacheKey.Audience.mount(kind), .children(kind)] {
                    let kept = used.changing { $0.audience = audience }
                    outdated.insert(kept)
                    store.removeWithVariants(kept)
                }
            }
        }
        flights.invalidate(outdated)
    }

    /// Returns the marks in cache keys of the user information for the origin of a URL: that of the
    /// URL, those of all mounts, and nil for none.
    private func users(of url: AbsoluteURL) -> Set<String?> {
        var users: Set<String?> = [nil]
        users.insert(keys.user(of: url))
        for mount in links.router.mounts(of: url.origin) {
            users.insert(keys.user(of: mount.origin))
        }
        return users
    }
}
