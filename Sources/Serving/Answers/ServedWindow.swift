import CachePolicy
import HLS
import Model
import Playlists
import Posix
import Store
import TimeShifting
import URISyntax

/// Time shift when a playlist is served: received windows are merged, the served one is extended.
extension ProxyCore {
    /// Returns the form in which a stored playlist is served now; called for every request, so it
    /// must cost no more than a table lookup.
    ///
    /// The origin's text is changed by time shift, then by the offline form. First merges the window
    /// of a live list if time shift needs it.
    func form(of text: ServableText, now: Monotonic) -> PlaylistForm {
        var form = PlaylistForm.origin
        form.timeShift = shiftVersion(of: text, now: now)
        if let cut = text.cut { form.offline = cut.number }
        return form
    }

    /// Returns the version of the extended window for this playlist; 0 for the origin's text.
    ///
    /// First merges the playlist's window, if it is a new one.
    private func shiftVersion(of text: ServableText, now: Monotonic) -> UInt64 {
        guard text.resource.session.isShifted, !text.resource.followsHTTP,
            text.facts.head.isPlaylist, !timeShiftThread.isOver(text.resource.session)
        else { return 0 }
        let (object, facts, resource) = (text.object, text.facts, text.resource)
        let list = timeShift.list(resource.url, of: resource.session)
        guard !list.isUnread else { return 0 }
        list.noteAsked(resource.url, at: now, isForPage: text.isForPage)
        if !list.hasMerged(object.generation), !merge(object, facts, resource, into: list) {
            return 0
        }
        list.lookForKept(timeShift)
        let version = list.version
        if version != 0 { timeShiftThread.look(after: list, of: resource, now: now) }
        return version
    }

    /// - Returns: false if the playlist cannot be parsed, or has no window.
    private func merge(
        _ object: StoredObject, _ facts: ObjectFacts, _ resource: Resource,
        into list: ShiftedList
    ) -> Bool {
        guard let body = try? readBody(of: object, count: Int(object.total ?? 0)),
            let base = try? resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        else { return false }
        try? names.noteNames(
            in: (body, base), of: resource, object, options: reading(of: resource))
        let outcome = try? list.merge(
            .init(body: body, base: base, key: resource.listKey, facts: facts), timeShift)
        return outcome?.isShifted ?? false
    }

    /// True if the form of a session's playlist takes too long for a loop: its extended window is
    /// long, or is not in memory, so that its file must be read.
    func isShiftLong(_ resource: Resource) -> Bool {
        guard resource.session.isShifted, !resource.followsHTTP else { return false }
        let list = timeShift.known(resource.url, of: resource.session)
        return list?.isLong ?? true
    }
}
