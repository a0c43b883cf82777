// The changes to a playlist before its URIs are rewritten: the origin's text, then time shift, then
// the offline form, then the session's limit of variants.
import Model
import Playlists
import Posix
import Store

extension OfflineForm {
    /// The text to serve, if it differs from the stored one.
    var cut: OfflineText? {
        if case .cut(let text) = self { text } else { nil }
    }
}

extension ProxyCore {
    /// Returns the form in which a stored playlist is served now; called for every request, so it
    /// must cost no more than a table lookup.
    ///
    /// First merges the window of a live list if time shift needs it.
    func form(of text: ServableText, now: Monotonic) -> PlaylistForm {
        var form = PlaylistForm.origin
        form.timeShift = shiftVersion(of: text, now: now)
        if let cut = text.cut { form.offline = cut.number }
        return form
    }
}
