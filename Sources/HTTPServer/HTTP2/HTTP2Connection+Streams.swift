import CNGHTTP2
import HTTP
import Posix
import Reactor

/// The session's reports about streams, and the streams' requests to the session.
extension HTTP2Connection {
    /// Charges a frame that requests nothing.
    func charge(_ cost: Int) {
        if !allowance.take(cost, now: server.loop.now) { endForMisuse() }
    }

    /// Charges a WINDOW_UPDATE.
    func chargeUpdate() {
        if !allowance.takeUpdate(now: server.loop.now) { endForMisuse() }
    }

    /// Charges fields that were decoded and dropped.
    func chargeFields(_ count: Int) {
        if !allowance.takeFields(count, now: server.loop.now) { endForMisuse() }
    }

    private func endForMisuse() { session?.terminate(NGHTTP2_ENHANCE_YOUR_CALM) }

    /// Charges HEADERS that the session will refuse because the client has too many open streams.
    ///
    /// Each refusal is a frame that is kept until the client reads it.
    func headersBegin() {
        if streams.count >= Int(Self.mostStreams) { charge(FrameAllowance.resetCost) }
    }

    /// Charges a sent RST_STREAM if the client's frames provoked it: a stream that is opened and
    /// broken costs the server as much as one that is opened and reset.
    ///
    /// A refusal is charged when its HEADERS begin; resets because of an origin are not the
    /// client's.
    func resetSent(_ code: UInt32) {
        switch nghttp2_error_code(rawValue: code) {
        case NGHTTP2_PROTOCOL_ERROR, NGHTTP2_FLOW_CONTROL_ERROR, NGHTTP2_STREAM_CLOSED,
            NGHTTP2_FRAME_SIZE_ERROR, NGHTTP2_COMPRESSION_ERROR:
            charge(FrameAllowance.resetCost)
        default: break
        }
    }

    /// Terminates the connection for a violation that the session does not detect.
    func protocolFailed() { session?.terminate(NGHTTP2_PROTOCOL_ERROR) }

    /// Handles the client's first SETTINGS, which completes the connection preface.
    func settingsArrived() {
        guard state.phase == .opening else { return }
        enter(.idle)
    }

    /// Begins a stream when the field block of a request begins.
    func beginStream(_ id: Int32) {
        streams[id] = HTTP2Stream(id, on: self)
        state.beginBlock(of: id, now: server.loop.now, limits: server.limits)
        var block = block ?? server.takeHeaderBlock()
        block.reset()
        self.block = block
    }

    /// Reads a request whose field block is complete.
    func headArrived(_ id: Int32, isEnd: Bool) {
        state.endBlock(of: id)
        guard let stream = streams[id], stream.exchange == nil, let block else { return }
        stream.hasPriority = stream.hasPriority || block.hasPriority
        if isEnd { stream.content.end() }
        stream.read(block)
        self.block = nil
        server.giveBack(block)
        if !isEnd { mustSettle = true }
        arrived.append(stream)
    }

    /// Takes a place for a request, which may open a file; the first has that of the connection.
    ///
    /// - Returns: false if the server has no place left.
    func takePlace() -> Bool {
        guard placed == 0 || server.enterStream() else { return false }
        placed += 1
        return true
    }

    /// Gives back the place of a request that is over.
    func leavePlace() {
        placed -= 1
        if placed > 0 { server.counter.leaveStream() }
    }

    /// Stores content of a request.
    func contentArrived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let stream = streams[id], stream.wantsContent else {
            session?.consume(connection: bytes.count)
            return
        }
        stream.content.append(bytes)
    }

    func contentEnded(_ id: Int32) { streams[id]?.content.end() }

    /// Resets a stream whose response head is too large to be sent.
    func headNotSent(_ id: Int32) {
        streams[id]?.isBroken = true
        session?.reset(id, NGHTTP2_INTERNAL_ERROR)
    }

    /// Removes a stream that the session has closed.
    func streamClosed(_ id: Int32) {
        // The session does not report the end of a block that it rejects.
        if state.endBlock(of: id), let block {
            self.block = nil
            server.giveBack(block)
        }
        guard let stream = streams.removeValue(forKey: id) else { return }
        session?.consume(connection: stream.content.count)
        let isWhole = stream.response?.isWhole ?? false
        let ending: ResponseOutcome.Ending =
            stream.isBroken ? .broken : isWhole ? .complete : .aborted
        if isWhole { allowance.noteResponse() }
        over.append((stream, ending))
    }

    /// Records that content of a response was put into a frame.
    func noteContent(_ count: Int) {
        contentSent += Int64(count)
        allowance.noteContent(count)
    }

    /// Records that the end of a response was put into a frame; request content that has not
    /// arrived by then is no longer needed (RFC 9113 section 8.1).
    func responseEnded(_ stream: HTTP2Stream) {
        if !stream.content.isEnded { unread.append(stream.id) }
    }

    // MARK: Requests of streams

    /// Sends a head; its content follows as it becomes available.
    func submit(
        _ fields: FieldBlock, on stream: HTTP2Stream, response: HTTP2Response?, isInterim: Bool
    ) {
        guard let session, streams[stream.id] === stream else { return }
        if !isInterim, !stream.hasPriority, let response {
            let type = fields.value(of: "content-type")
            session.prioritise(
                stream.id,
                DefaultPriority.urgency(contentType: type, length: response.length))
        }
        let isSent = session.submit(
            fields, on: stream.id, hasContent: response?.hasContent ?? false, isInterim: isInterim)
        if !isSent { session.reset(stream.id, NGHTTP2_INTERNAL_ERROR) }
        if let response, !response.hasContent {
            response.finish()
            responseEnded(stream)
        }
        runTurn()
    }

    /// Continues a response whose source has more content.
    func resume(_ stream: HTTP2Stream) {
        session?.resume(stream.id)
        runTurn()
    }

    /// Reports consumed content, so that the client may send as much again.
    func consume(_ count: Int, on stream: HTTP2Stream) {
        // The content held by a closed stream was counted when it closed.
        guard streams[stream.id] === stream else { return }
        session?.consume(stream: stream.id, count)
        runTurn()
    }

    /// Records a stream's deadline, and arms the timer for it: the call may come outside a turn.
    func note(_ deadline: Monotonic?) {
        state.note(deadline)
        if state.phase != .closed { armTimer() }
    }
}
