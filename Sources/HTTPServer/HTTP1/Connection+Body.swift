import HTTP
import Posix
import Reactor

/// The content of the open request, passed on as the handler requests it.
extension Connection {
    /// Returns the next content of the open request.
    func nextContent(of body: RequestBody, limit: Int) -> RequestBody.Step {
        guard body === exchange?.body, state.isBusy, reader.hasOpenContent else {
            return body === exchange?.body && state.isBusy ? .end : .gone
        }
        do throws(RequestError) {
            switch try reader.content(limit: limit) {
            case .bytes(let bytes):
                reader.noteContinueSent()
                return .bytes(bytes)
            case .end:
                state.contentEnded()
                return .end
            case .needsMore:
                sayContinue()
                return state.isBusy ? .wait : .gone
            }
        } catch {
            contentFailed(error)
            return .gone
        }
    }

    private func sayContinue() {
        guard reader.mustSendContinue, response == nil else { return }
        reader.noteContinueSent()
        output.append(contentsOf: "HTTP/1.1 100 Continue\r\n\r\n".utf8)
        runTurn()
    }

    /// Reads more content from the client, since the handler waits for it.
    func contentIsWanted(of body: RequestBody) {
        guard body === exchange?.body, state.isBusy, reader.hasOpenContent else { return }
        state.wantContent(now: server.loop.now, limits: server.limits)
        updateWatch()
    }

    /// Reads content that the handler waits for.
    func readContent() {
        switch receive() {
        case .bytes(let count):
            state.contentArrived(count, now: server.loop.now)
            keep(count)
            let wake = exchange?.body?.wake
            exchange?.body?.wake = nil
            wake?(server.loop)
        case .wouldBlock: break
        // The rest will not arrive.
        case .end: close(.aborted)
        }
    }

    private func keep(_ count: Int) {
        // A local reference for this call only: reading into a shared array would copy it first.
        let input = server.input
        reader.add(input.span.extracting(0..<count))
    }

    /// Handles invalid or missing content: sends an error response, unless a response has begun.
    func contentFailed(_ error: RequestError) {
        guard response == nil else {
            close(.aborted, reset: true)
            return
        }
        state.contentEnded()
        endResponse(.aborted)
        answer(error)
        updateWatch()
    }

    /// True if the connection can be reused after a response that leaves content unread: not if the
    /// client still waits for 100 Continue, since the server cannot know whether it will send the
    /// content.
    var canDiscardContent: Bool {
        guard reader.hasOpenContent else { return true }
        if reader.mustSendContinue { return false }
        return reader.remainingContent.map { $0 <= Int64(server.limits.lingerBytes) } ?? true
    }
}
