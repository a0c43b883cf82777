// The one place where a playlist becomes another one before its URIs are rewritten: origin's text,
// then time shift, then what can be played without the network.
import HTTPServer
import Model
import Playlists
import Posix
import Reactor
import Store

extension OriginExchange {
    /// The form in which a stored playlist is served now; asked for with every request, so it must
    /// cost no more than a look into a table.
    func form(of object: StoredObject, _ facts: ObjectFacts) -> PlaylistForm {
        core.form(of: object, facts, resource, cut: cut, now: exchange.loop.now)
    }

    /// The offline form, if it is the one to serve.
    var cut: OfflineText? {
        if case .cut(let text)? = offline { text } else { nil }
    }
}

extension ProxyCore {
    /// The form in which a stored playlist is served.
    ///
    /// Takes the window of a live list in first where time shift wants it.
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
