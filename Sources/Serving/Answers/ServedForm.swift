// The changes to a playlist before its URIs are rewritten: the origin's text, then time shift, then
// the offline form.
import HTTPServer
import Model
import Playlists
import Posix
import Reactor
import Store

extension OriginExchange {
    /// Returns the form in which a stored playlist is served now; called for every request, so it
    /// must cost no more than a table lookup.
    func form(of object: StoredObject, _ facts: ObjectFacts) -> PlaylistForm {
        core.form(of: object, facts, resource, cut: cut, now: exchange.loop.now)
    }

    /// The offline form, if it is to be served.
    var cut: OfflineText? {
        if case .cut(let text)? = offline { text } else { nil }
    }
}

extension ProxyCore {
    /// Returns the form in which a stored playlist is served.
    ///
    /// First merges the window of a live list if time shift needs it.
    func form(
        of object: StoredObject, _ facts: ObjectFacts, _ resource: Resource, cut: OfflineText?,
        now: Monotonic
    ) -> PlaylistForm {
        var form = PlaylistForm.origin
        form.timeShift = shiftVersion(of: object, facts, resource, now: now)
        if let cut { form.offline = cut.number }
        return form
    }
}
