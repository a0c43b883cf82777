// What playlists and the one that names them learn from each other: which texts were made before a
// parent was read, and which parents name live lists.
import CachePolicy
import HLS
import Model
import Playlists
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
            for key in listKeys(of: url, in: session) {
                guard let object = store.peekOpen(key),
                    let facts = ObjectFacts.of(object), facts.isPrepared(for: session.id)
                else { continue }
                facts.forgetTexts(of: object)
            }
        }
    }

    /// The keys that a playlist may be stored under for a session: that of all, and its own.
    private func listKeys(of url: AbsoluteURL, in session: Session) -> [ObjectKey] {
        let shared = names.keys.cacheKey(of: url, session: session, role: .playlist)
        let own = CacheKey(url: shared.url, audience: .session(session.id.text))
        return [ObjectKey(shared), ObjectKey(own)]
    }

    // MARK: Live lists

    /// Notes that a session is given a live list, for the playlist that names it.
    func noteLive(_ list: Resource) {
        let session = list.session.id
        guard live.parents.noteShown(list.listKey, to: session) else { return }
        for known in revival.lists(of: session)
        where playlistMemory.isParent(known.url, of: list.url, in: session) {
            noteParent(known)
        }
    }

    /// Notes what a multivariant playlist names: lists of it may have been live before it was read.
    func noteChildren(_ children: [AbsoluteURL], of parent: Resource) {
        let key = parent.listKey
        guard !live.isEmpty, !live.parents.contains(key) else { return }
        let lists = children.prefix(PlaylistMemory.mostChildren)
            .flatMap { listKeys(of: $0, in: parent.session) }
        if live.contains(anyOf: lists) { noteParent(parent) }
    }

    /// Notes that a multivariant playlist names a live list; texts that were made before hold for
    /// ever.
    private func noteParent(_ parent: Resource) {
        guard live.parents.note(parent.listKey), let object = store.peekOpen(parent.key),
            let facts = ObjectFacts.of(object)
        else { return }
        facts.forgetTexts(of: object)
    }
}
