import HTTP
import Posix
import Reactor
import TLS
import URISyntax

/// The sending half of a connection: sends heads, content and framing while the socket has room.
extension Connection {
    /// The outcome of one sending step.
    private enum Turn {
        case goOn
        /// The socket is full, or the turn is over: continues when the socket is writable.
        case blocked
        /// Everything is sent; the source or the handler must act next.
        case waiting
        case finished
        /// The client has disconnected.
        case gone
        case broken
    }

    // MARK: Responses

    /// Starts the response of the open exchange.
    func respond(to exchange: Exchange, _ head: ResponseHead, _ body: ResponseBody) {
        precondition(exchange === self.exchange, "an answer to a request that is not open")
        start(head, body, exchange.askedFraming)
        runTurn()
    }

    /// Sends an interim head; the exchange stays open.
    func sendInterim(_ head: ResponseHead) {
        var head = head
        head.version = .http11
        // Drops an ill-formed interim head, which is optional.
        guard (try? serialise(head, into: &output)) != nil else { return }
        runTurn()
    }

    /// Answers a request that was invalid or too late, and ends the connection.
    func answer(_ error: RequestError) {
        let (head, body) = error.response
        start(head, body, .nothingUnderstood)
        pump()
    }

    /// Sends what is available, in a turn of its own unless one is running, which will update the
    /// watched events at its end.
    func runTurn() {
        if isProcessing { return pump() }
        budget = server.limits.roundBytes
        pump()
        updateWatch()
    }

    private func start(
        _ head: ResponseHead, _ body: ResponseBody, _ asked: ResponsePlan.AskedFraming
    ) {
        let content: ResponsePlan.Content =
            switch body {
            case .none: .none
            case .bytes(let bytes): .length(Int64(bytes.count))
            case .source(_, let length): length.map { .length($0) } ?? .unknown
            }
        let wantsClose =
            head.fields.contains(.connection)
            && head.fields.hasConnectionOption("close")
        let plan = ResponsePlan(
            asked, status: head.status, content: content,
            mustClose: wantsClose || server.isDraining || !canDiscardContent)
        if output.isEmpty { output = server.takeBuffer() }
        do throws(ResponseHeadError) {
            try plan.append(head, dateLine: server.dateLine(), to: &output)
        } catch {
            // Rejects a field that would inject a line: the client gets a 500 response instead.
            if case .source(let source, _) = body { source.cancel() }
            start(ResponseHead(status: .internalServerError), .none, asked)
            return
        }
        enter(.sending)
        begin(head.status, body, plan)
    }

    private func begin(_ status: HTTPStatus, _ body: ResponseBody, _ plan: ResponsePlan) {
        var bytes: [UInt8] = []
        var source: (any BodySource)?
        var joined = 0
        switch body {
        case .none: break
        case .bytes(let content) where plan.framing != .none:
            if content.count <= ResponseInFlight.joinLimit {
                output.append(contentsOf: content)
                joined = content.count
            } else {
                bytes = content
            }
        case .bytes: break
        case .source(let content, _):
            if plan.framing == .none { content.cancel() } else { source = content }
        }
        response = ResponseInFlight(
            status: status, framing: plan.framing, closes: plan.closes, bytes: bytes,
            source: source, bodySent: Int64(joined), joined: joined)
    }

    // MARK: Turns

    /// Sends until the socket is full, the turn is over or the source has no more.
    func pump() {
        guard !isPumping else {
            wasWokenWhilePumping = true
            return
        }
        guard state.phase != .closed, state.phase != .lingering else { return }
        isPumping = true
        madeProgress = false
        var turn = Turn.goOn
        repeat {
            wasWokenWhilePumping = false
            repeat { turn = step() } while turn == .goOn
        } while turn == .waiting && wasWokenWhilePumping
        isPumping = false
        conclude(turn)
    }

    private func conclude(_ turn: Turn) {
        guard state.phase != .closed else { return }
        switch turn {
        case .goOn, .waiting: state.unblock()
        case .blocked:
            let now = server.loop.now
            state.block(madeProgress: madeProgress, now: now, limits: server.limits)
        case .finished: finish()
        case .gone: close(.aborted)
        case .broken: breakOff()
        }
    }

    private func step() -> Turn {
        guard let response else { return flush(more: false) ?? .waiting }
        if let source = response.source, !response.isWhole { return step(source) }
        let sent = Int(response.bodySent)
        guard response.joined == 0, sent < response.bytes.count else {
            return flush(more: false) ?? .finished
        }
        if let stop = flush(more: true) { return stop }
        guard budget > 0 else { return .blocked }
        return sendContent(response.bytes[sent..<min(response.bytes.count, sent + budget)], nil)
    }

    private func step(_ source: any BodySource) -> Turn {
        guard budget > 0 else { return flush(more: false) ?? .blocked }
        let limit = response?.limit(budget: budget) ?? 0
        let next = source.next(limit: limit)
        guard state.phase == .sending else { return .gone }
        switch next {
        case .file(let descriptor, let offset, let count):
            precondition(count > 0 && count <= limit, "a source offered \(count) of \(limit) bytes")
            if let stop = flushBeforeContent(count) { return stop }
            return sendFile(descriptor, offset, count, source)
        case .bytes(let bytes):
            precondition(
                !bytes.isEmpty && bytes.count <= limit,
                "a source offered \(bytes.count) of \(limit) bytes")
            if let stop = flushBeforeContent(bytes.count) { return stop }
            return sendContent(bytes, source)
        case .wait:
            if let stop = flush(more: false) { return stop }
            source.wake = { [weak self] _ in self?.wake() }
            return .waiting
        case .end:
            return end(source)
        case .broken:
            return .broken
        }
    }

    /// Ends the content if it has the announced length.
    private func end(_ source: any BodySource) -> Turn {
        guard let response, response.mayEnd else { return .broken }
        if response.framing == .chunked { ChunkedEncoding.appendLastChunk(to: &output) }
        // Cleared first; `source` keeps it alive until no property is being changed.
        self.response?.source = nil
        source.release()
        return .goOn
    }

    private func wake() {
        guard state.phase == .sending else { return }
        runTurn()
    }

    // MARK: Bytes

    /// Writes the output that precedes content: the head, the header of a new chunk.
    private func flushBeforeContent(_ count: Int) -> Turn? {
        if response?.framing == .chunked, response?.chunkRemaining == 0 {
            ChunkedEncoding.appendHeader(size: count, to: &output)
            response?.chunkRemaining = count
        }
        return flush(more: true)
    }

    /// Writes the output; returns nil once all of it is written.
    private func flush(more: Bool) -> Turn? {
        while outputStart < output.count {
            let outcome = output.withUnsafeBytes { bytes in
                send(UnsafeRawBufferPointer(rebasing: bytes[outputStart...]), more: more)
            }
            switch outcome {
            case .bytes(let count):
                outputStart += count
                madeProgress = true
            case .wouldBlock:
                keepRest()
                return .blocked
            case .closed: return .gone
            }
        }
        if output.capacity > 0 { server.giveBack(&output) }
        outputStart = 0
        if !isClear, !more, let tls, tls.hasUnsent { return flush(tls) }
        return nil
    }

    /// Sends the records that the socket had no room for; returns nil once all are sent.
    private func flush(_ tls: TLSSession) -> Turn? {
        switch tls.flush(to: number) {
        case .bytes: return nil
        case .wouldBlock: return .blocked
        case .closed: return .gone
        }
    }

    private func send(_ bytes: UnsafeRawBufferPointer, more: Bool = false) -> WriteOutcome {
        guard !isClear, let tls else { return Posix.send(bytes, to: number, more: more) }
        return tls.send(bytes, to: number)
    }

    /// Returns a large buffer before waiting for the socket, since there may be many slow clients.
    private func keepRest() {
        guard output.capacity >= ServerLoop.bufferSize else { return }
        var rest = Array(output[outputStart...])
        swap(&rest, &output)
        outputStart = 0
        server.giveBack(&rest)
    }

    private func sendContent(_ bytes: ArraySlice<UInt8>, _ source: (any BodySource)?) -> Turn {
        switch bytes.withUnsafeBytes({ send($0) }) {
        case .bytes(let count): return noteSent(count, source)
        case .wouldBlock: return .blocked
        case .closed: return .gone
        }
    }

    private func sendFile(
        _ descriptor: CInt, _ offset: Int64, _ count: Int, _ source: any BodySource
    ) -> Turn {
        let outcome =
            if !isClear, let tls, let security = server.security {
                security.sendFile(
                    descriptor, offset: offset, count: count, to: number, through: tls)
            } else {
                Posix.sendFile(descriptor, offset: offset, count: count, to: number)
            }
        switch outcome {
        case .bytes(let sent): return noteSent(sent, source)
        case .wouldBlock: return .blocked
        case .closed: return .gone
        // The file is shorter than the source expects, or cannot be read.
        case .fileFailed(let code): return source.recover(fromReadError: code) ? .goOn : .broken
        }
    }

    private func noteSent(_ count: Int, _ source: (any BodySource)?) -> Turn {
        madeProgress = true
        budget -= count
        if response?.noteSent(count) == true { ChunkedEncoding.appendTrailer(to: &output) }
        source?.advance(by: count)
        return .goOn
    }

    // MARK: Ends

    /// Completes the response: continues with the next request, or ends the connection.
    private func finish() {
        state.unblock()
        let closes = (response?.closes ?? false) || server.isDraining
        // A client that announced its last request sends nothing more that an immediate close could
        // destroy.
        if closes, isLastRequest { return close(.complete) }
        if closes { linger() } else { enter(reader.hasOpenContent ? .body : .idle) }
        endResponse(.complete)
        guard state.isReading else { return }
        // Bytes that arrived together with this request cause no event of their own any more.
        if reader.heldCount > 0 { process() }
    }

    /// True if the client announced this request as its last one and has sent nothing after it.
    ///
    /// False with TLS, since the client still sends its close_notify.
    private var isLastRequest: Bool {
        guard isClear, let exchange, exchange.body == nil else { return false }
        return !exchange.askedFraming.keepAlive && reader.isAtStart && !state.isInputPaused
    }

    /// Makes the client notice that the content is incomplete.
    ///
    /// Content with a length or in chunks is too short at an end (RFC 9112 section 8), behind which
    /// the client still gets all that was sent; a reset would take back what it has not read yet.
    /// Content that ends with the connection would appear complete, so only that is reset.
    private func breakOff() {
        if let response, response.framing != .untilClose, flush(more: false) == nil {
            output = []
            state.unblock()
            linger()
            endResponse(.broken)
        } else {
            close(.broken, reset: true)
        }
    }

    /// Releases the source and ends the exchange, once.
    func endResponse(_ ending: ResponseOutcome.Ending) {
        let ended = response
        let over = exchange
        response = nil
        exchange = nil
        over?.body?.end()
        ended?.source?.release()
        let unsent = ending == .complete ? 0 : min(ended?.joined ?? 0, output.count - outputStart)
        over?.end(
            ResponseOutcome(
                status: ended?.status, bodyBytes: (ended?.bodySent ?? 0) - Int64(unsent),
                ending: ending))
    }
}
