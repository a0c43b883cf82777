/// Time shift where a playlist is answered: what comes in is merged, what goes out is extended.
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Posix
import Reactor
import Routing
import Store
import URISyntax

extension OriginExchange {
    /// The version of the longer window that this playlist is answered with; 0 for the origin's
    /// own text. Takes the window in first, if it is a new one.
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
            let base = try? resource.withUserinfo(AbsoluteURL(facts.head.finalURL)),
            let outcome = try? list.merge(
                body, base: base,
                variables: core.playlistMemory.variables(of: resource.session.id),
                generation: object.generation, sibling: core.timeShift.sibling(of: list))
        else { return false }
        core.keeper.drop(outcome.dropped, of: list)
        core.note(outcome)
        return outcome.isShifted
    }

    /// The playlist with its longer window; URIs are the origin's.
    func shifted() -> [UInt8]? {
        let list = core.timeShift.known(resource.url, of: resource.session.id)
        let ending = resource.policy == .offline ? TimeShift.Ending.ended : .live
        let bytes = list?.playlist(ending: ending) ?? []
        return bytes.isEmpty ? nil : bytes
    }
}

extension ProxyCore {
    /// Counts what a merge has found.
    func note(_ outcome: ShiftedList.Outcome) {
        if outcome.relation == .newEpoch { counters.add(.shiftEpochs) }
        if outcome.missed > 0 { counters.add(.shiftMissed, Int64(outcome.missed)) }
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
            guard item.rawName == "_HLS_msn", let number = item.rawValue.flatMap({ Int($0) }) else {
                return item
            }
            return QueryItem(rawName: item.rawName, rawValue: "\(shift.originNumber(of: number))")
        }
    }
}
