import CCurl
import HTTP
import Posix
import Reactor
import URISyntax

// What each hop took, as libcurl tells it.

extension UpstreamClient {
    /// What requests have cost since the start, those of other clients with the same ledger included.
    package var figures: TransferFigures { ledger.figures }

    /// Notes what is known when the head of the final response has come; inside libcurl.
    func noteHead(_ transfer: Transfer) {
        transfer.measure()
        transfer.request.trace?.begin(transfer.times)
    }

    /// Notes what a hop took, while its handle is still with libcurl; `result` is nil where a redirect
    /// is followed.
    func noteEnd(of transfer: Transfer, _ result: TransferResult?) {
        guard let easy = transfer.easy else { return }
        transfer.measure()
        if transfer.request.connectsOnly {
            if easy.long(CURLINFO_NUM_CONNECTS) > 0, case .success? = result {
                transfer.times.connection = .new
                ledger.figures.noteConnection(
                    transfer.times, to: transfer.origin, in: transfer.lane)
            }
            return
        }
        var marks = HopTimes.Marks()
        marks.firstByte = easy.microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        marks.end = easy.microseconds(CURLINFO_TOTAL_TIME_T)
        let failure: UpstreamError? = if case .failure(let error)? = result { error } else { nil }
        if failure == nil { transfer.times.takeEnd(marks) }
        var bytes = Int64(transfer.discarded)
        if case .body = transfer.phase { bytes = transfer.bytesReceived }
        var counted = transfer.times
        // The wait of a request that the origin holds until there is more says nothing of its speed.
        if transfer.request.isHeld { counted[.firstByte] = nil }
        ledger.figures.note(
            counted, to: transfer.origin, in: transfer.lane, bytes: bytes,
            isError: failure?.isOfOrigin ?? transfer.isServerError)
        transfer.request.trace?.end(transfer.times)
    }
}

extension UpstreamError {
    /// Whether the origin, or the way to it, failed: not where the transfer was taken back.
    fileprivate var isOfOrigin: Bool { fault == .origin || fault == .network }
}

extension Transfer {
    /// Whether the response says that the origin failed.
    fileprivate var isServerError: Bool { parser.status.rawValue >= 500 }

    /// Asks libcurl for the times up to the first byte, once for each hop.
    fileprivate func measure() {
        guard let easy, times.tries == 0 else { return }
        times.tries = requestsOfHop
        defer { noteAddress() }
        let isNew = easy.long(CURLINFO_NUM_CONNECTS) > 0
        var marks = HopTimes.Marks()
        marks.slot = (hopStartedAt - wantedAt).nanoseconds / 1_000
        marks.name = easy.microseconds(CURLINFO_NAMELOOKUP_TIME_T)
        marks.connect = easy.microseconds(CURLINFO_CONNECT_TIME_T)
        marks.tls = easy.microseconds(CURLINFO_APPCONNECT_TIME_T)
        marks.sending = easy.microseconds(CURLINFO_PRETRANSFER_TIME_T)
        marks.firstByte = easy.microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        times.take(marks, isNew: isNew)
        times.address = peer()
        guard requestsOfHop > 0 else { return }
        times.connection = isNew ? .new : .reused
        if case .head = phase { return }
        times.version = parser.version
    }

    /// Remembers an address that took a connection.
    private func noteAddress() {
        guard times.connection == .new, route.isPlain, let client, let address = times.address
        else {
            return
        }
        client.names.connected(origin, to: address.host, now: loop.now)
    }

    /// Asks whether TLS of a connection that was made for this request resumed a session.
    ///
    /// Asked when the request is about to be sent: the handshake is over, and the connection belongs to
    /// the handle.
    func noteHandshake() {
        guard let easy, origin.scheme == .https, easy.long(CURLINFO_NUM_CONNECTS) > 0 else {
            return
        }
        times.handshake = easy.isSessionResumed.map { $0 ? .resumed : .full }
    }
}
