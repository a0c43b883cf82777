import CachePolicy
import Glibc
import HLS
import Logging
import Model
import Origin
import Posix
import Store
import Upstream
import URISyntax

/// Reading on when the object cannot store more bytes: the rest is written to an object that is not
/// stored.
extension Reader {
    /// The most detours: the first unstored file may be on a disk that becomes full, and the store
    /// then places the second one elsewhere.
    private static let mostDetours = 2

    /// Marks unreadable stored bytes as missing, so that they are fetched again.
    ///
    /// - Returns: false if this machine lacked memory, which says nothing about the bytes: the
    ///   player asks again.
    func recover(fromReadError code: CInt) -> Bool {
        let error = SystemError("sendfile", code: code == 0 ? EIO : code)
        guard code != ENOMEM, code != ENOBUFS else {
            core.log.warning(
                "no memory to send stored bytes: the response is broken off",
                metadata: ["url": "\(resource.url.redacted)", "error": "\(error)"])
            return false
        }
        core.log.warning(
            "stored bytes cannot be read, and are fetched again",
            metadata: [
                "url": "\(resource.url.redacted)", "offset": "\(offset)", "error": "\(error)",
            ])
        object.noteUnreadable(at: offset, error)
        return true
    }

    /// Fetches the rest into an object that is not stored, because this one takes no more bytes.
    func goOnElsewhere() {
        let isVersionKnown =
            object.total != nil || ObjectFacts.of(object)?.head.strongValidator != nil
        guard object.didFailToStore, detours < Self.mostDetours, isVersionKnown, resource.mayStore
        else {
            return endBroken(because: object.lastFailure?.error ?? FillEnd.representationChanged)
        }
        detours += 1
        search?.cancel()
        search = nil
        stopWaiting()
        core.counters.add(.notStored)
        source = source.changing {
            $0.cacheKey.detour = detours
            $0.mayStore = false
            $0.role = $0.role ?? .media
        }
        let request = FetchRequest(
            resource: source, wanted: .span(start: offset, end: end), for: .rest(of: object),
            repliesAt: .head, lane: .playback)
        ask(request) { reader, reply in reader.receiveDetour(reply) }
    }

    private func receiveDetour(_ reply: FetchReply) {
        guard !isOver else { return }
        switch reply {
        case .object(let other, let outcome)
        where moves(to: other, isProven: outcome.isProvenRest):
            return
        case .failure(let failure) where endsHere(failure): endWell()
        case .failure(let failure): endBroken(because: failure)
        case .object, .notModified, .head: endBroken(because: FillEnd.representationChanged)
        }
    }

    /// Continues in another object; returns false if it holds another representation, whose rest
    /// must never follow the start of this one.
    func moves(to other: StoredObject, isProven: Bool = false) -> Bool {
        guard let head = ObjectFacts.of(other)?.head,
            isProven || ObjectFacts.isSame(object, as: head, total: other.total),
            !isForPage || !core.settings.mayBePrivate(finalURL: head.finalURL)
        else { return false }
        stopWaiting()
        leave()
        object = other
        enter()
        waitAnew()
        return true
    }
}
