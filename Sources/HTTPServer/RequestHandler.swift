// The interface between the server and the code that answers requests.
package import HTTP
package import Reactor

/// Answers requests; one instance per loop, called only on that loop.
package protocol RequestHandler: AnyObject {
    /// Handles one request.
    ///
    /// The response is sent by `Exchange.respond`, immediately or later on the same loop; it must
    /// be sent, since the connection waits for it without limit.
    ///
    /// - Parameters:
    ///   - request: the validated head.
    ///   - body: the content, which need not be read; nil for none.
    ///   - exchange: the response side.
    func handle(_ request: RequestHead, body: RequestBody?, exchange: Exchange)
}

/// The content of a response.
package enum ResponseBody {
    /// No content; sends `Content-Length: 0` if the status allows it.
    case none
    /// Content in memory.
    case bytes([UInt8])
    /// Content from a source; `length` is in bytes, nil if unknown.
    ///
    /// A response of unknown length is chunked, or for HTTP/1.0 ends with the connection.
    case source(any BodySource, length: Int64?)
}

/// A step of a body source.
package enum BodyStep {
    /// Bytes of an open file, at least one; the descriptor is not used after the next call.
    case file(descriptor: CInt, offset: Int64, count: Int)
    /// Bytes in memory, at least one.
    case bytes(ArraySlice<UInt8>)
    /// Nothing yet; `wake` is called when there is more.
    case wait
    /// The content is complete.
    case end
    /// The content cannot be continued: the client gets a broken body, never a clean short one.
    case broken
}

/// A source of a response body, such as a reader of an object that may still be growing.
///
/// Life cycle: `next` and `advance` in turn, `wake` set after each `.wait`, finally `cancel`, once,
/// however the response ended; `cancel` also without any call of `next` if no content is sent.
package protocol BodySource: AnyObject {
    /// Returns what can be sent now; never blocks.
    ///
    /// Called again without `advance`, it offers the same bytes.
    ///
    /// - Parameter limit: the maximum number of bytes, at least 1; offering more traps.
    /// - Returns: the next bytes, or why there are none.
    func next(limit: Int) -> BodyStep
    /// Called when `count` bytes of the last step, at least one and maybe not all, were sent.
    func advance(by count: Int)
    /// The callback for the next step: set once after each `.wait`, to be called once, on the loop,
    /// when there is more; if there is more already, it may be called immediately.
    var wake: ((EventLoop) -> Void)? { get set }
    /// Called when bytes of the last step could not be read from their file.
    ///
    /// - Parameter code: the errno; 0 if the file is too short.
    /// - Returns: true if `next` provides them from elsewhere; false breaks the response off.
    func recover(fromReadError code: CInt) -> Bool
    /// Called when the response is over or its connection closed; nothing is called after it.
    func cancel()
}

extension BodySource {
    package func recover(fromReadError code: CInt) -> Bool { false }

    /// Ends the use of the source, which is called no more and calls nothing.
    func release() {
        wake = nil
        cancel()
    }
}

/// The outcome of a response, for logs and counters.
package struct ResponseOutcome: Sendable, Hashable {
    /// The way a response ended; the raw values are stable.
    package enum Ending: String, Sendable, Hashable, CaseIterable {
        /// All of it was passed to the kernel.
        case complete
        /// The client disconnected, stopped reading or was cut off by a stop of the server.
        case aborted
        /// The server could not complete it.
        case broken
    }

    /// The status sent; nil if the client disconnected before that.
    package let status: HTTPStatus?
    /// Bytes of content, without framing, passed to the kernel.
    package let bodyBytes: Int64
    package let ending: Ending
}
