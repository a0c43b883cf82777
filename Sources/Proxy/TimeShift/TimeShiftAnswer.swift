import CachePolicy
import HLS
import HTTP
import HTTPServer
import Numbers
import Posix
import Reactor
import Routing
import Store
import Synchronization
import URISyntax

/// Time shift where a playlist is answered: what comes in is merged, what goes out is extended.
extension OriginExchange {
    /// The version of the longer window that this playlist is answered with; 0 for the origin's text.
    ///
    /// Takes the window in first, if it is a new one.
    func shiftVersion(of object: StoredObject, _ facts: ObjectFacts) -> UInt64 {
        guard resource.session.shift != .none, resource.kind == nil, facts.head.isPlaylist,
            !core.keeper.isOver(resource.session)
        else { return 0 }
        let list = core.timeShift.list(resource.url, of: resource.session)
        list.noteAsked(at: exchange.loop.now)
        if !list.hasMerged(object.generation), !merge(object, facts, into: list) { return 0 }
        list.lookForKept(core)
        let version = list.version
        if version != 0 { core.keeper.look(after: list, of: resource) }
        return version
    }

    /// - Returns: false where the playlist cannot be read, or has no window.
    private func merge(
        _ object: StoredObject, _ facts: ObjectFacts, into list: ShiftedList
    ) -> Bool {
        guard let body = try? read(object),
            let base = try? resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        else { return false }
        try? core.noteNames(in: (body, base), of: resource, object, options: rewriteOptions)
        let outcome = try? list.merge(
            .init(
                body: body, base: base, key: resource.listKey, generation: object.generation), core)
        return outcome?.isShifted ?? false
    }

    /// The playlist with its longer window; URIs are the origin's.
    func shifted() -> [UInt8]? {
        let list = core.timeShift.known(resource.url, of: resource.session.id)
        let ending = resource.policy == .offline ? TimeShift.Ending.ended : .live
        let bytes = list?.playlist(ending: ending) ?? []
        return bytes.isEmpty ? nil : bytes
    }
}

extension OriginExchange {
    /// Says where a longer window was wished for and there is nothing to extend.
    func noteCompleteness(in fields: inout Fields) {
        guard resource.session.shift.window != nil,
            let list = core.timeShift.known(resource.url, of: resource.session.id),
            list.state.withLock({ $0.isComplete })
        else { return }
        fields.append(.cacheStatus, "sluice-window; detail=\"complete playlist, dvr ignored\"")
    }
}

extension ProxyCore {
    /// What the names of a segment stand for now.
    func marks(of segment: TimeShiftSegment, _ session: Session) -> TimeShiftSegment.Marks {
        func mark(_ url: AbsoluteURL?, _ role: ResourceRole) -> UInt32 {
            guard let url else { return 0 }
            let name = ObjectKey(cacheKey(url, session: session, role: role))
            return live.epoch(of: name).number
        }
        return TimeShiftSegment.Marks(
            segment: mark(segment.url, .segment), map: mark(segment.mapURL, .initialization),
            key: mark(segment.keyURL, .key))
    }
}

extension OriginExchange {
    /// What the names of the served list stood for when their segments were new; nil where those
    /// of the origin's last window tell.
    func namesOfShifted(_ form: PlaylistForm) -> TimeShift? {
        guard form.timeShift != 0 || core.keeper.isOver(resource.session) else { return nil }
        return core.timeShift.list(resource.url, of: resource.session).shift
    }

    /// The epoch of a name in a longer window.
    func epoch(of reference: ResourceReference, in shift: TimeShift) -> Epoch {
        guard let marks = shift.marks(number: reference.mediaSequence) else { return .first }
        return switch reference.role {
        case .initialization: Epoch(number: marks.map)
        case .key: Epoch(number: marks.key)
        case .segment, .subtitle, .media, .image: Epoch(number: marks.segment)
        case .part, .playlist, .json: .first
        }
    }
}

extension CachingProxy {
    /// Answers for a segment that is not kept with an empty body.
    ///
    /// Players that know EXT-X-GAP do not ask; of the others GStreamer gives up on a 404 and VLC asks
    /// for ever, while all of them play on behind a segment with nothing in it.
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
        exchange.respond(ResponseHead(status: .ok, fields: fields), body: .bytes([]))
    }
}

extension TimeShiftTable {
    /// Delivery directives with the numbers that the origin knows (8216bis, 6.2.5.2).
    func translated(
        _ directives: [QueryItem], for url: AbsoluteURL, _ session: Session
    ) -> [QueryItem] {
        guard session.shift != .none, !directives.isEmpty, let list = known(url, of: session.id)
        else { return directives }
        let shift = list.shift
        return directives.map { item in
            guard item.rawName == "_HLS_msn",
                let number = item.rawValue.flatMap({
                    OutsideNumber.integer($0, in: 0...OutsideNumber.largest)
                })
            else { return item }
            return QueryItem(rawName: item.rawName, rawValue: "\(shift.originNumber(of: number))")
        }
    }
}
