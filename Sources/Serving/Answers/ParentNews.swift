// Rewritten texts that were made before the playlist that names them was read.
import CachePolicy
import HLS
import Model
import Routing
import Store
import URISyntax

extension ProxyCore {
    /// Discards the rewritten texts of playlists that are to be read in another way from now on:
    /// their parent defines variables that they import, or names them as subtitles.
    ///
    /// This is rare, so the texts of other sessions go too. A key with all that is known of the
    /// parent would have to be made for each hit, and repeated hits have no key.
    ///
    /// - Parameters:
    ///   - lists: the playlists.
    ///   - session: the session for which they were rewritten.
    func forgetTexts(of lists: [AbsoluteURL], in session: Session) {
        for url in lists {
            let shared = names.cacheKey(url, session: session, role: .playlist)
            let own = CacheKey(url: shared.url, audience: .session(session.id.text))
            for key in [shared, own] {
                guard let object = store.peekOpen(ObjectKey(key)),
                    let facts = ObjectFacts.of(object), facts.isPrepared(for: session.id)
                else { continue }
                facts.forgetTexts(of: object)
            }
        }
    }
}
