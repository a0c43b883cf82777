import CCurl
import HTTP
import Posix
import Reactor
import URISyntax

/// Counts what the transfers of one loop's clients cost, by libcurl's times of each hop.
///
/// Used on that loop only.
final class TransferLedger {
    var figures = TransferFigures()

    /// Records the times up to the head of the final response; called inside libcurl.
    func noteHead(_ transfer: Transfer) {
        transfer.measure(hasHead: true)
        transfer.request.trace?.begin(transfer.hopState.times)
    }

    /// Records the times of a hop while its handle is still with libcurl; `result` is nil if a
    /// redirect is followed.
    func noteEnd(of transfer: Transfer, _ result: TransferResult?) {
        guard let easy = transfer.easy else { return }
        transfer.measure(hasHead: false)
        if transfer.request.connectsOnly {
            if case .success? = result { noteConnection(of: transfer) }
            return
        }
        var marks = HopTimes.Marks()
        marks.firstByte = transfer.markOfFirstByte(easy)
        marks.end = easy.microseconds(CURLINFO_TOTAL_TIME_T)
        let failure: UpstreamError? = if case .failure(let error)? = result { error } else { nil }
        if failure == nil { transfer.hopState.times.takeEnd(marks) }
        // Redirects deliver nothing: what was delivered is of the last hop.
        let bytes = Int64(transfer.hopState.discarded) + transfer.bytesReceived
        var counted = transfer.hopState.times
        // The wait of a request that the origin holds on purpose does not measure its speed.
        if transfer.request.isHeld { counted[.firstByte] = nil }
        figures.note(
            counted, to: transfer.origin, in: transfer.lane, bytes: bytes,
            isError: failure?.isOfOrigin == true || transfer.isServerError)
        transfer.request.trace?.end(transfer.hopState.times)
    }

    /// Records the connection of a transfer that sends no request, if it has opened one.
    private func noteConnection(of transfer: Transfer) {
        guard transfer.isNewConnection else { return }
        var times = transfer.hopState.times
        times.connection = .new
        // The phases of a request, which was not sent.
        times[.slot] = nil
        times[.firstByte] = nil
        figures.note(
            times, to: transfer.origin, in: transfer.lane, bytes: 0, isError: false,
            isRequest: false)
    }
}

extension UpstreamError {
    /// True if the origin, or the way to it, failed; not if the transfer was cancelled.
    fileprivate var isOfOrigin: Bool { fault == .origin || fault == .network }
}

extension Transfer {
    /// True if the response has a 5xx status.
    fileprivate var isServerError: Bool { hopState.parser.status.rawValue >= 500 }

    /// When the first byte of the response arrived, in microseconds of libcurl's time; 0 if none
    /// has.
    ///
    /// libcurl's own mark is made when a request's body begins to be sent, if there is one.
    fileprivate func markOfFirstByte(_ easy: CurlEasy) -> Int64 {
        guard request.upload != nil else {
            return easy.microseconds(CURLINFO_STARTTRANSFER_TIME_T)
        }
        guard let wait = hopState.times[.firstByte] else { return 0 }
        return easy.microseconds(CURLINFO_PRETRANSFER_TIME_T) + Int64(wait)
    }

    /// Reads the times up to the first byte from libcurl, once for each hop.
    ///
    /// - Parameter hasHead: true if the response's head has just arrived.
    fileprivate func measure(hasHead: Bool) {
        guard let easy, hopState.times.tries == 0 else { return }
        hopState.times.tries = hopState.requests
        defer { noteAddress() }
        let isNew = isNewConnection
        var marks = HopTimes.Marks()
        marks.slot = (hopState.startedAt - wantedAt).nanoseconds / 1_000
        marks.name = easy.microseconds(CURLINFO_NAMELOOKUP_TIME_T)
        marks.connect = easy.microseconds(CURLINFO_CONNECT_TIME_T)
        marks.tls = easy.microseconds(CURLINFO_APPCONNECT_TIME_T)
        marks.sending = easy.microseconds(CURLINFO_PRETRANSFER_TIME_T)
        marks.firstByte =
            request.upload == nil
            ? easy.microseconds(CURLINFO_STARTTRANSFER_TIME_T)
            : hasHead ? (loop.now - hopState.startedAt).nanoseconds / 1_000 : 0
        hopState.times.take(marks, isNew: isNew)
        hopState.times.address = peer()
        client?.yields?.responseBegins()
        guard hopState.requests > 0 else { return }
        hopState.times.connection = isNew ? .new : .reused
        if case .head = hopState.phase { return }
        hopState.times.version = hopState.parser.version
    }

    /// Records an address that accepted a connection.
    private func noteAddress() {
        guard hopState.times.connection == .new, route.isPlain, let client,
            let address = hopState.times.address
        else { return }
        client.names.connected(origin, to: address.host)
    }

    /// Records whether TLS of a connection made for this request resumed a session.
    ///
    /// Called when the request is about to be sent: the handshake is over, and the connection
    /// belongs to the handle.
    func noteHandshake() {
        guard let easy, origin.scheme == .https, isNewConnection else { return }
        hopState.times.handshake = easy.isSessionResumed.map { $0 ? .resumed : .full }
    }
}
