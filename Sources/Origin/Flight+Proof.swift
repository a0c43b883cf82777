import Model
import CachePolicy
import HTTP
import Store
import Upstream

/// What a response proves of its bytes: their place in the body, their end, the body they belong to.
extension Flight {
    /// The head of the response whose rest is asked for; nil where there is none yet.
    var knownHead: StoredHead? {
        (object ?? terms.rest).flatMap { ObjectFacts.of($0)?.head }
    }

    /// Whether a part is coded as the rest of the body is: a range counts bytes of the coded body (RFC
    /// 9110 section 14.1), so that parts of one coding fit together and those of two never do.
    func isCodedAsKnown(_ head: TransferHead) -> Bool {
        let coding = head.fields.first(.contentEncoding) ?? "identity"
        let known = knownHead?.fields.first(.contentEncoding) ?? "identity"
        return HTTP.ASCII.equalIgnoringCase(coding, known)
    }

    /// Sends the request again for what is wanted now; the answer to the former one is not read.
    func askAgain() {
        let running = transfer
        transfer = nil
        running?.cancel()
        table.counters.add(.originRetries)
        ask()
    }

    /// Takes the length of a body from the word that there is nothing behind the stored bytes.
    ///
    /// Of a body whose length nobody tells, whoever read it later would be sent to ask again.
    func learnEnd(_ total: Int64?) {
        guard let object, object.total == nil, case .span(let start, _) = wanted,
            object.spans.contiguousEnd(from: 0) == start, start > 0
        else { return }
        if let total, total == start, knownHead?.strongValidator != nil {
            _ = object.learnTotal(total)
        } else {
            object.discard()
        }
    }

    /// Takes bytes of the body, as far as the response has said that it holds them.
    func take(_ bytes: UnsafeRawBufferPointer) {
        guard writer != nil, !bytes.isEmpty else { return }
        guard comparesAhead else { return takeProven(bytes) }
        takeComparing(bytes)
    }

    /// As `take`, of bytes that nothing stored has to be compared with.
    func takeProven(_ bytes: UnsafeRawBufferPointer) {
        let count = provenCount(of: bytes.count)
        gather(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        if count < bytes.count { endAtProven() }
    }

    /// How many of the next bytes lie within what the response has said it holds.
    private func provenCount(of count: Int) -> Int {
        guard let provenEnd, let writer else { return count }
        return Int(max(0, min(Int64(count), provenEnd - writer.offset - Int64(gathered.count))))
    }

    /// Ends a transfer that goes on behind the end of what it said it holds.
    func endAtProven() {
        let running = transfer
        transfer = nil
        running?.cancel()
        flush()
        settleWrites()
        guard state == .filling else { return }
        transferWasWholeAfterAll()
    }

    /// Goes on with an object that is not kept: what all readers have read is given back to the disk.
    func passOn() {
        guard state == .filling, let object else { return }
        if !isUnkept, outcome?.notStored == nil {
            isUnkept = true
            table.counters.add(.notStored)
            // Nobody waits for these bytes themselves.
            if isAhead, !isPlaylist { return refuse(.noRoom) }
            if waiters.isEmpty { table.checkAbandoned(self) }
        }
        guard waiters.isEmpty, let least = table.readers.least(object.generation) else { return }
        object.punch(upTo: max(0, least - Wanted.overlapLimit))
    }
}
