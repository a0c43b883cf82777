import CachePolicy
import HTTP
import Model
import Origin
import Store
import URISyntax

/// What an unsafe request makes untrue: stored responses of its URL and of those that its answer
/// names (RFC 9111 section 4.4).
extension ProxyCore {
    /// Invalidates after an answer to `method`, where that is unsafe and the answer no error; may
    /// block on the disk.
    ///
    /// - Parameters:
    ///   - method: the method of the request; unknown ones count as unsafe.
    ///   - status: the status of the answer.
    ///   - fields: the fields of the answer, as the origin sent them.
    ///   - url: what was asked for, at the origin.
    func invalidate(
        after method: HTTPMethod, _ status: HTTPStatus, _ fields: Fields, url: AbsoluteURL
    ) {
        guard !method.isSafe, (200..<400).contains(status.rawValue) else { return }
        invalidate(url)
        for name: FieldName in [.location, .contentLocation] {
            guard let text = fields.first(name),
                let named = try? URLResolver(base: url.withoutUserinfo).resolve(text),
                // Nobody speaks for another origin's responses.
                named.origin == url.origin, named.text != url.text
            else { continue }
            invalidate(named)
        }
    }

    /// Takes out of the store what is kept for a mounted URL, all variants; what is being sent is
    /// sent to its end, and what is being fetched is not kept.
    func invalidate(_ url: AbsoluteURL) {
        let key = CacheKey(url: keys.key(of: url, in: KeyPlace(isMounted: true)).text)
        store.remove(ObjectKey(key))
        var outdated: Set<CacheKey> = [key]
        for kind in CacheKind.allCases {
            let kept = key.changing { $0.audience = .mount(kind) }
            outdated.insert(kept)
            store.removeWithVariants(kept)
        }
        flights.invalidate(outdated)
    }
}
