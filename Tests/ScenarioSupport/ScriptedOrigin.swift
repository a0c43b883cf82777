import CLinux
import FixtureCDN
import Glibc
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
        /// Waits for some time.
        case pause(Duration)
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
        var port: UInt16 = 0
        var listener: Int32 = -1
        var isStopped = false
        var active = 0
        var connectionScripts: [Script] = []
        var answers: [Script] = []
        var requests: [WireHead] = []
        var bodies: [[UInt8]] = []
        var failures: [String] = []
        var open: Set<Int32> = []
    }

    package let transcript: Transcript
    private let state = Mutex(State())

    /// Starts to listen on a free port of 127.0.0.1.
    package init(transcript: Transcript = Transcript()) throws {
        self.transcript = transcript
        let listening = try Self.listen()
        state.withLock { ($0.listener, $0.port) = listening }
        let descriptor = listening.0
        guard startDetachedThread({ self.accept(descriptor) }) else {
            throw ScenarioFailure("no thread could be made")
        }
    }

    package var port: UInt16 { state.withLock { $0.port } }
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
        state.withLock {
            $0.isStopped = true
            if $0.listener >= 0 { shutdown($0.listener, Int32(SHUT_RDWR)) }
            for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        _ = eventually { state.withLock { $0.listener < 0 && $0.active == 0 } }
    }

    // MARK: Threads

    static func listen() throws -> (Int32, UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = try HostPort(host: "127.0.0.1", port: 0).socketAddress()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failed = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) != 0 || Glibc.listen(descriptor, 256) != 0
                    || getsockname(descriptor, $0, &size) != 0
            }
        }
        guard !failed else { throw ScenarioFailure("cannot listen on 127.0.0.1") }
        return (descriptor, UInt16(bigEndian: name.sin_port))
    }

    private func accept(_ listener: Int32) {
        while true {
            let descriptor = clinux_accept(listener, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            let script: Script? = state.withLock {
                $0.active += 1
                $0.open.insert(descriptor)
                return $0.connectionScripts.isEmpty ? nil : $0.connectionScripts.removeFirst()
            }
            let started = startDetachedThread {
                self.serve(descriptor, script)
                self.state.withLock { $0.active -= 1 }
            }
            precondition(started, "no thread could be made")
        }
        Glibc.close(listener)
        state.withLock { $0.listener = -1 }
    }

    private func serve(_ descriptor: Int32, _ script: Script?) {
        let run = OriginRun(
            socket: WireSocket(descriptor: descriptor, name: "origin", transcript: transcript),
            onRequest: { head, body in
                self.state.withLock {
                    $0.requests.append(head)
                    $0.bodies.append(body)
                }
            })
        defer {
            // Removed before it is closed, so that `stop()` cannot meet the reused number.
            state.withLock { _ = $0.open.remove(descriptor) }
            run.finish()
        }
        do {
            if let script {
                try run.play(script.steps)
                return
            }
            while let head = try run.nextRequest() {
                guard let found = takeAnswer(head.path, head.target) else {
                    throw ScenarioFailure("nothing answers \(head.startLine)")
                }
                try run.play(found.steps)
                if run.isOver { return }
            }
        } catch {
            let message = (error as? ScenarioFailure)?.message ?? "\(error)"
            transcript.note("origin", "failed: \(message)")
            state.withLock {
                if !$0.isStopped { $0.failures.append(message) }
            }
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
