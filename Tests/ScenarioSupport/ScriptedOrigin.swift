import Synchronization

/// An origin that follows a script, with its own HTTP code.
///
/// Scripts are of two kinds. `connection(...)` is played on the next accepted connection, step by
/// step. `answer(path, ...)` waits for a request for that path on any connection without a script
/// of its own, and is used once; several for one path are used in order. `verify()` fails if a step
/// was missed or a script is left over.
package final class ScriptedOrigin: Sendable {
    /// One step of a script.
    package enum Step: Sendable {
        /// Reads a request, which must be this one; a path without `?` matches any query.
        case expect(_ method: String, _ path: String)
        /// Waits until a barrier is open.
        case hold(until: Barrier)
        /// Sends a response; `Content-Length` is added unless the fields frame the body.
        case respond(_ status: Int, _ fields: [WireHead.Field] = [], _ body: [UInt8] = [])
        /// Sends only this many body bytes of the next `respond`, then closes the connection.
        case cut(afterBytes: Int)
        /// Sends bytes as they are.
        case send(_ bytes: [UInt8])
        /// Waits until the peer closes.
        case stall
        /// Closes the connection.
        case close
        /// Closes with a TCP reset.
        case reset
    }

    private struct Script {
        let path: String?
        let steps: [Step]
    }

    private struct State {
        var isStopped = false
        var connectionScripts: [Script] = []
        var answers: [Script] = []
        var requests: [WireHead] = []
        var bodies: [[UInt8]] = []
        var failures: [String] = []
    }

    package let transcript: Transcript
    private let state = Mutex(State())
    private let listener: WireListener

    /// Starts to listen on a free port of 127.0.0.1.
    package init(transcript: Transcript = Transcript()) throws {
        self.transcript = transcript
        listener = try WireListener()
        // Connections get their scripts in the order in which they are accepted.
        try listener.start(planning: { self.takeScript() }, serve: { self.serve($0, $1) })
    }

    package var port: UInt16 { listener.port }
    package var baseURL: String { "http://127.0.0.1:\(port)" }
    package func url(_ path: String) -> String { baseURL + path }

    /// Every request head received so far.
    package var requests: [WireHead] { state.withLock { $0.requests } }
    /// The contents of those requests.
    package var bodies: [[UInt8]] { state.withLock { $0.bodies } }
    package func requestCount(_ path: String) -> Int { requests.filter { $0.path == path }.count }

    /// Plays `steps` on the next connection.
    package func connection(_ steps: Step...) {
        state.withLock { $0.connectionScripts.append(Script(path: nil, steps: steps)) }
    }

    /// Plays `steps` for the next request of `path`, whose head has been read already.
    package func answer(_ path: String, _ steps: Step...) {
        state.withLock { $0.answers.append(Script(path: path, steps: steps)) }
    }

    /// Waits until every script is played; throws with the transcript what was missed.
    package func verify(within limit: Duration = patience) throws {
        _ = eventually(within: limit) {
            state.withLock {
                !$0.failures.isEmpty || ($0.connectionScripts.isEmpty && $0.answers.isEmpty)
            }
        }
        let (failures, left) = state.withLock {
            ($0.failures, $0.connectionScripts.count + $0.answers.count)
        }
        if let failure = failures.first { throw ScenarioFailure(failure, transcript: transcript) }
        guard left == 0 else {
            throw ScenarioFailure("\(left) scripts were not played", transcript: transcript)
        }
    }

    /// Closes the listener and all connections.
    package func stop() {
        state.withLock { $0.isStopped = true }
        listener.stop()
    }

    // MARK: Connections

    private func takeScript() -> Script? {
        state.withLock { $0.connectionScripts.isEmpty ? nil : $0.connectionScripts.removeFirst() }
    }

    private func serve(_ descriptor: Int32, _ script: Script?) -> WireListener.Closing {
        let run = OriginRun(
            socket: WireSocket(descriptor: descriptor, name: "origin", transcript: transcript),
            onRequest: { head, body in
                self.state.withLock {
                    $0.requests.append(head)
                    $0.bodies.append(body)
                }
            })
        do {
            if let script { try run.play(script.steps) } else { try answer(run) }
        } catch {
            let message = (error as? ScenarioFailure)?.message ?? "\(error)"
            transcript.note("origin", "failed: \(message)")
            state.withLock {
                if !$0.isStopped { $0.failures.append(message) }
            }
        }
        return { run.finish() }
    }

    /// Answers the requests of a connection without a script of its own.
    private func answer(_ run: OriginRun) throws {
        while let head = try run.nextRequest() {
            guard let found = takeAnswer(head.path, head.target) else {
                throw ScenarioFailure("nothing answers \(head.startLine)")
            }
            try run.play(found.steps)
            if run.isOver { return }
        }
    }

    private func takeAnswer(_ path: String, _ target: String) -> Script? {
        state.withLock {
            let index = $0.answers.firstIndex { $0.path == path || $0.path == target }
            guard let index else { return nil }
            return $0.answers.remove(at: index)
        }
    }
}
