// What stands between the server and the code that answers requests.
package import HTTP
package import Reactor

/// Answers requests; one instance a loop, only ever called on it.
package protocol RequestHandler: AnyObject {
    /// Takes over one request. The answer may be given at once or later, on the same loop, by
    /// `Exchange.respond`; it must be given, since the connection waits for it without end.
    ///
    /// - Parameters:
    ///   - request: The head, checked and in order.
    ///   - body: The content, which need not be read; nil for none.
    ///   - exchange: Where the answer goes.
    func handle(_ request: RequestHead, body: RequestBody?, exchange: Exchange)
}

/// The content of a response.
package enum ResponseBody {
    /// No content; `Content-Length: 0` where the status may have one.
    case none
    /// Content at hand.
    case bytes([UInt8])
    /// Content that a source yields. `length` in bytes if known; without it the response is
    /// chunked, or ends with the connection for HTTP/1.0.
    case source(any BodySource, length: Int64?)
}

/// What a source can do now.
package enum BodyStep {
    /// Bytes of an open file, at least one. The descriptor is used before the next call only.
    case file(descriptor: CInt, offset: Int64, count: Int)
    /// Bytes in memory, at least one.
    case bytes(ArraySlice<UInt8>)
    /// Nothing yet; `wake` says when.
    case wait
    /// The content is whole.
    case end
    /// Our side cannot go on: the client is made to see a broken body, never a clean short one.
    case broken
}

/// A response body on its way: walks an object that may still be growing.
///
/// Life: `next` and `advance` in turn, `wake` set after each `.wait`, at last `cancel`, once,
/// however the response ended; also without any call of `next` where it has no content.
package protocol BodySource: AnyObject {
    /// What can be sent now; never blocks. Asked again without `advance`, it offers the same bytes.
    ///
    /// - Parameter limit: The most bytes wanted, at least 1; offering more is a fault and traps.
    /// - Returns: The next bytes, or why there are none.
    func next(limit: Int) -> BodyStep
    /// Called when so many bytes of the last step, at least one and maybe not all, went out.
    func advance(by count: Int)
    /// How to ask for the next turn: set once after each `.wait`, to be called once, on the loop,
    /// when there is more. Where there is more already, calling it at once is right.
    var wake: ((EventLoop) -> Void)? { get set }
    /// Called when bytes of the last step could not be read from their file.
    ///
    /// - Parameter code: The errno; 0 where the file is too short.
    /// - Returns: True where `next` finds them elsewhere; false breaks the response off.
    func recover(fromReadError code: CInt) -> Bool
    /// The response is over or its connection gone; nothing is called after it.
    func cancel()
}

extension BodySource {
    package func recover(fromReadError code: CInt) -> Bool { false }
}

/// How a response ended, for logs and counters.
package struct ResponseOutcome: Sendable, Hashable {
    /// Who ended it; the raw values are stable.
    package enum Ending: String, Sendable, Hashable, CaseIterable {
        /// All of it was handed to the kernel.
        case complete
        /// The client hung up, stopped reading or was cut off by a stop.
        case aborted
        /// Our side could not go on.
        case broken
    }

    /// The status sent; nil if the client was gone before there was one.
    package let status: HTTPStatus?
    /// Bytes of content, without framing, that were handed to the kernel.
    package let bodyBytes: Int64
    package let ending: Ending
}
