import Model
import CachePolicy
import HTTP
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// What a flight makes of the origin's heads where HTTP's rules lead: under a mount.
extension Flight {
    func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {
        guard transfer === self.transfer, let tell = terms.interim else { return }
        tell(ResponseHead(status: head.status, fields: endToEndFields(head.fields)))
    }

    /// Takes the head of an answer; every final status is one.
    func receiveUnderRules(_ head: TransferHead) {
        if terms.method == .head {
            // To a condition of ours, which the client knows nothing of.
            if head.status == .notModified, revalidates {
                return receiveNotModifiedUnderRules(head)
            }
            return receiveHeadOnly(head)
        }
        switch head.status.rawValue {
        case 200 where isVerifyingEnd: endVerification(isProven: false)
        case 206 where fits(head): receivePart(head)
        case 206: receiveOpaquePart(head)
        case 304 where revalidates: receiveNotModifiedUnderRules(head)
        case 304 where !terms.conditions.isEmpty: answerHead(head)
        // Nobody has asked whether anything has changed: there is no answer in this.
        case 304: refuse(ProxyFailure(originStatus: head.status, subject: resource.url.redacted))
        case 416 where isVerifyingEnd: endVerification(isProven: true)
        case 416 where wanted.rangeField != nil && terms.conditions.isEmpty:
            receiveUnsatisfiable(head)
        case 500...599 where revalidates && terms.staleServes:
            // As if the origin had not answered (RFC 9111 section 4.3.3).
            refusal = (head.status, nil)
            transfer?.cancel()
        default: receiveWhole(head)
        }
    }

    /// The head of a response as it is kept.
    func storedHead(_ head: TransferHead) -> StoredHead {
        let now = table.loop.wallNow
        var fields = StoredHead.keptFields(of: head.fields, for: resource.kind)
        if resource.kind != nil {
            // The range of a part is not the object's.
            if head.status == .partialContent, !isOpaque { fields.remove(.contentRange) }
            // Who passes on a response without a date gives it one (RFC 9110 section 6.6.1).
            if !fields.contains(.date) { fields.append(.date, HTTPDate.format(now.seconds)) }
        }
        return StoredHead(
            status: head.status == .partialContent && !isOpaque ? .ok : head.status,
            fields: fields,
            requestTime: requestTime, responseTime: now,
            finalURL: head.finalURL.withoutUserinfo.text, isPlaylist: isPlaylist,
            kind: resource.kind)
    }

    /// Notes a variant under the URL's own key, once it is published.
    func noteVariant(_ object: StoredObject) {
        guard resource.kind != nil, object.isStorable,
            object.url != resource.cacheKey.primary.text,
            let head = ObjectFacts.of(object)?.head
        else { return }
        table.store.note(object, head, of: resource, by: SelectingFields(head.fields))
    }

    /// Whether a part is the one asked for, and says the same of itself everywhere (RFC 9110 section
    /// 15.3.7).
    private func fits(_ head: TransferHead) -> Bool {
        guard case .satisfied(let first, let last, let total)? = ContentRange.parse(head.fields)
        else { return false }
        let length = last - first + 1
        if let told = head.fields.first(.contentLength), told != String(length) { return false }
        guard isCodedAsKnown(head) else { return false }
        switch wanted {
        case .suffix(let wanted):
            guard let total else { return false }
            return last == total - 1 && length == min(wanted, total)
        case .span(let start, let end):
            return first == start && end.map { last < $0 } ?? true
        }
    }

    /// Passes a part on as it came: whoever asked may understand it, the store does not.
    private func receiveOpaquePart(_ head: TransferHead) {
        guard writer == nil, object == nil else {
            return refuse(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): the origin sent another range than asked for",
                    originStatus: head.status))
        }
        isOpaque = true
        // Its length is what it says of itself, however it ends: no other part of the body can be told
        // to follow on it.
        var length = head.contentLength
        if length == nil, case .satisfied(let first, let last, _)? = ContentRange.parse(head.fields)
        {
            length = last - first + 1
        }
        begin(head, from: 0, to: nil, total: length)
    }

    /// A 304 renews what was asked about: the object, or the variant that its tag names (RFC 9111
    /// section 4.3.4).
    private func receiveNotModifiedUnderRules(_ head: TransferHead) {
        if object == nil, !terms.tags.isEmpty {
            let tag = head.fields.first(.etag)
            let named = terms.tags.first { $0.tag == tag }
            let only = tag == nil && terms.tags.count == 1 ? terms.tags[0] : nil
            if let mark = (named ?? only)?.mark {
                object = table.store.lookup(ObjectKey(resource.cacheKey.selected(by: mark)))
            }
        }
        receiveNotModified(head)
    }

    /// The answer to HEAD: what is stored is renewed where it is the same representation, and is
    /// not believed any more where it is another one (RFC 9111 section 4.3.5).
    private func receiveHeadOnly(_ head: TransferHead) {
        guard let object, let stored = ObjectFacts.of(object)?.head, head.status == .ok else {
            return answerHead(head)
        }
        let length = head.contentLength
        let isSame =
            (length == nil || object.total == nil || length == object.total)
            && [.etag, .lastModified].allSatisfy { (name: FieldName) in
                let new = head.fields.first(name)
                return new == nil || new == stored.fields.first(name)
            }
        guard isSame else {
            table.store.remove(object.key)
            return answerHead(head)
        }
        receiveNotModified(head)
    }

    /// Passes on an answer without content to the one that asked for it.
    private func answerHead(_ head: TransferHead) {
        let length = head.fields.first(.contentLength)
        let stored = storedHead(head)
        let waiting = waiters
        waiters = []
        close(cause: nil, cancels: false)
        for waiter in waiting { waiter.answer(.head(stored, length: length), table) }
    }
}
