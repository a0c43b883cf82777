import HTTP
import Posix
import Reactor

/// The content of the open request: handed over as it is asked for.
extension Connection {
    /// The next content of the open request.
    func nextContent(of body: RequestBody, limit: Int) -> RequestBody.Step {
        guard body === exchange?.body, state.isBusy, reader.hasOpenContent else {
            return body === exchange?.body && state.isBusy ? .end : .gone
        }
        do throws(RequestError) {
            switch try reader.content(limit: limit) {
            case .bytes(let bytes):
                reader.settleContinue()
                return .bytes(bytes)
            case .end:
                state.contentEnded()
                return .end
            case .needsMore:
                sayContinue()
                return state.isBusy ? .wait : .gone
            }
        } catch {
            contentFailed(error.status, error.reason)
            return .gone
        }
    }

    private func sayContinue() {
        guard reader.owesContinue, response == nil else { return }
        reader.settleContinue()
        output.append(contentsOf: "HTTP/1.1 100 Continue\r\n\r\n".utf8)
        runTurn()
    }

    /// Somebody waits for more: the client may send again, and has to.
    func contentIsWanted(of body: RequestBody) {
        guard body === exchange?.body, state.isBusy, reader.hasOpenContent else { return }
        state.wantContent(now: server.loop.now, limits: server.limits)
        settle()
    }

    /// Reads content that somebody waits for.
    func readContent() {
        switch receive() {
        case .bytes(let count):
            state.contentArrived(count, now: server.loop.now)
            keep(count)
            let wake = exchange?.body?.wake
            exchange?.body?.wake = nil
            wake?(server.loop)
        case .wouldBlock: break
        // The rest will not come.
        case .end: close(.aborted)
        }
    }

    private func keep(_ count: Int) {
        // Held no longer than this call: reading into a shared array would copy it first.
        let input = server.input
        reader.add(input.span.extracting(0..<count))
    }

    /// The content cannot be read, or did not come: the client is told, if it has not been told
    /// anything else yet.
    func contentFailed(_ status: HTTPStatus, _ reason: String) {
        guard response == nil else {
            close(.aborted, reset: true)
            return
        }
        state.contentEnded()
        endResponse(.aborted)
        answer(status, reason)
        settle()
    }

    /// Whether the connection can go on after a response that leaves content unread: not where the
    /// client still waits to be asked for it, since nobody knows then whether it will come.
    var canDiscardContent: Bool {
        guard reader.hasOpenContent else { return true }
        if reader.owesContinue { return false }
        return reader.remainingContent.map { $0 <= Int64(server.limits.lingerBytes) } ?? true
    }
}
