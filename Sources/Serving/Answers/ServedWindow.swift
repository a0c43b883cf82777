import CachePolicy
import HLS
import HTTP
import HTTPServer
import Model
import Posix
import Store
import TimeShifting
import URISyntax

/// Time shift when a playlist is served: received windows are merged, the served one is extended.
extension ProxyCore {
    /// Returns the version of the extended window for this playlist; 0 for the origin's text.
    ///
    /// First merges the playlist's window, if it is a new one.
    func shiftVersion(of text: ServableText, now: Monotonic) -> UInt64 {
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

extension TextPreparation {
    /// Returns the window that recorded the epochs of the served list's names; nil if those of the
    /// origin's last window apply.
    func namesOfShifted(_ form: PlaylistForm) -> TimeShift? {
        let resource = text.resource
        guard form.timeShift != 0 || core.timeShiftThread.isOver(resource.session)
        else { return nil }
        return core.timeShift.list(resource.url, of: resource.session).shift
    }

    /// True while the window of an ended recording cannot be read; without it, each name would mean
    /// the first resource that it stood for.
    var lacksNames: Bool {
        let resource = text.resource
        return core.timeShiftThread.isOver(resource.session)
            && core.timeShift.list(resource.url, of: resource.session).isUnread
    }
}

extension CachingProxy {
    /// Answers for a segment that is not stored with an empty body.
    ///
    /// Players that support EXT-X-GAP do not request it; of the others, GStreamer gives up on a 404
    /// and VLC repeats the request forever, while all of them continue after an empty segment.
    func answerGap(_ exchange: Exchange) {
        var fields = Fields()
        let fragments = [".m4s", ".mp4", ".m4v", ".m4a", ".cmfv", ".cmfa"]
        let isFragment = fragments.contains { exchange.request.path.hasSuffix($0) }
        fields.append(.contentType, isFragment ? "video/iso.segment" : "video/mp2t")
        fields.append(.cacheControl, "no-store")
        var status = CacheStatus(cache: "sluice", hit: true)
        status.detail = "gap"
        status.append(to: &fields)
        CrossOrigin.append(to: &fields, for: exchange.request, settings: core.settings)
        core.respond(exchange, own: ResponseHead(status: .ok, fields: fields), body: .bytes([]))
    }
}
