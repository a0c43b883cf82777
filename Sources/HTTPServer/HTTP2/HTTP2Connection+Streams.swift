import CNGHTTP2
import HTTP
import Posix
import Reactor

/// What the session reports of its streams, and what the streams ask of it.
extension HTTP2Connection {
    /// A frame that asks for nothing came.
    func charge(_ cost: Int) {
        if !allowance.take(cost, now: server.loop.now) {
            session?.terminate(NGHTTP2_ENHANCE_YOUR_CALM)
        }
    }

    /// HEADERS came, which the session refuses where the client has opened all streams that it may.
    ///
    /// Each refusal is a frame that is kept until the client reads it.
    func headersBegin() {
        if streams.count >= Int(Self.mostStreams) { charge(FrameAllowance.resetCost) }
    }

    /// The client broke a rule that the session does not watch.
    func protocolFailed() { session?.terminate(NGHTTP2_PROTOCOL_ERROR) }

    /// The client's first SETTINGS came: the connection is one of HTTP/2.
    func settingsArrived() {
        guard state.phase == .opening else { return }
        enter(.idle)
    }

    /// A block of fields begins a request.
    func beginStream(_ id: Int32) {
        streams[id] = HTTP2Stream(id, on: self)
        state.beginBlock(now: server.loop.now, limits: server.limits)
        var block = block ?? server.takeHeaderBlock()
        block.reset()
        self.block = block
    }

    /// The fields of a request are whole.
    func headArrived(_ id: Int32, isEnd: Bool) {
        state.endBlock()
        guard let stream = streams[id], stream.exchange == nil, let block else { return }
        stream.hasPriority = stream.hasPriority || block.hasPriority
        if isEnd { stream.content.end() }
        stream.read(block)
        self.block = nil
        server.giveBack(block)
        arrived.append(stream)
    }

    /// Content of a request came.
    func contentArrived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let stream = streams[id], stream.wantsContent else {
            session?.consume(connection: bytes.count)
            return
        }
        stream.content.append(bytes)
    }

    func contentEnded(_ id: Int32) { streams[id]?.content.end() }

    /// The session has let a stream go.
    func streamClosed(_ id: Int32, error: UInt32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        session?.consume(connection: stream.content.count)
        let isWhole = stream.response?.isWhole ?? false
        let ending: ResponseOutcome.Ending =
            isWhole ? .complete : stream.isBroken ? .broken : .aborted
        if isWhole { allowance.noteResponse() }
        over.append((stream, ending))
    }

    // MARK: What streams ask for

    /// Sends a head, and the content after it as it comes.
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

    /// A source has more.
    func resume(_ stream: HTTP2Stream) {
        session?.resume(stream.id)
        runTurn()
    }

    /// Content was taken: the client may send as much again.
    func consume(_ count: Int, on stream: HTTP2Stream) {
        // What a closed stream held was counted as it closed.
        guard streams[stream.id] === stream else { return }
        session?.consume(stream: stream.id, count)
        runTurn()
    }

    /// A stream has a deadline.
    func note(_ deadline: Monotonic?) { state.note(deadline) }
}
