// A case of conformance, and its outcome.
import HTTP
import HTTPServer
import Testing

/// A server that answers with the path or with the content it is sent, and a client that has
/// exchanged settings with it.
struct HTTP2Session {
    let server: TestServer
    let client: FrameClient

    init(_ settings: [(UInt16, UInt32)] = [], _ script: @escaping Script = echo) throws {
        server = try TestServer(script)
        client = server.frameClient()
        try #require(client.open(settings), "no exchange of settings")
    }

    /// Answers with the path, or with the request's content where there is some.
    static let echo: Script = { request, content, exchange in
        let bytes = content.isEmpty ? Array(request.path.utf8) : content
        exchange.respond(ok(), body: .bytes(bytes))
    }

    /// A session whose responses stop after their head, so that streams stay half-closed (remote).
    static func withoutWindow(_ script: @escaping Script = echo) throws -> HTTP2Session {
        try HTTP2Session([(Frame.Setting.initialWindowSize, 0)], script)
    }

    /// The largest payload that the server takes.
    var frameLimit: Int { Int(client.serverSettings[Frame.Setting.maxFrameSize] ?? 16384) }

    /// The outcomes that a client can see of the frames it has sent.
    enum Outcome: Hashable, CustomStringConvertible {
        /// GOAWAY with the code, and then the connection's end (RFC 9113, section 5.4.1).
        case connection(ErrorCode)
        /// RST_STREAM with the code, and the connection goes on (RFC 9113, section 5.4.2).
        case stream(ErrorCode)
        /// Neither, and the connection goes on.
        case ignored
        /// The connection's end without a reason, or its silence.
        case none

        var description: String {
            switch self {
            case .connection(let code): "connection \(code)"
            case .stream(let code): "stream \(code)"
            case .ignored: "ignored"
            case .none: "no outcome"
            }
        }
    }

    /// Expects one of the outcomes that the RFC allows, a stream error on the given stream.
    ///
    /// A server may treat a stream error as a connection error (section 5.4.1), which `either`
    /// allows.
    func expect(
        _ allowed: [Outcome], on stream: UInt32 = 1,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = outcome(stream, mayBeIgnored: allowed.contains(.ignored))
        #expect(
            allowed.contains(found), "\(found) of \(allowed)", sourceLocation: sourceLocation)
        #expect(client.faults.isEmpty, sourceLocation: sourceLocation)
    }

    private func outcome(_ stream: UInt32, mayBeIgnored: Bool) -> Outcome {
        let isOver = { (client: FrameClient) in
            client.streams[stream]?.reset != nil
                || (client.goAway.map { $0.code != .noError } ?? false)
        }
        if mayBeIgnored {
            // The second acknowledgement arrives after all that the server sent in answer to the
            // frames.
            _ = client.roundTrip() && client.roundTrip()
        } else {
            client.read(until: isOver)
        }
        if let goAway = client.goAway, goAway.code != .noError {
            return client.readToEnd() ? .connection(goAway.code) : .none
        }
        guard client.end == nil, client.roundTrip() else { return .none }
        if let code = client.streams[stream]?.reset { return .stream(code) }
        return mayBeIgnored ? .ignored : .none
    }
}

/// A stream error, which a server may treat as a connection error.
func either(_ code: ErrorCode) -> [HTTP2Session.Outcome] { [.stream(code), .connection(code)] }

/// Frames that are sent once settings are exchanged, and the allowed outcomes.
struct ConformanceCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let frames: [Frame]
    let stream: UInt32
    let allowed: [HTTP2Session.Outcome]
    /// Whether responses are held up, so that streams stay open for what follows.
    let holdsResponses: Bool

    init(
        _ name: String, _ frames: [Frame], on stream: UInt32 = 1, holdsResponses: Bool = false,
        _ allowed: [HTTP2Session.Outcome]
    ) {
        testDescription = name
        self.frames = frames
        self.stream = stream
        self.holdsResponses = holdsResponses
        self.allowed = allowed
    }

    func run() throws {
        let session = try holdsResponses ? HTTP2Session.withoutWindow() : HTTP2Session()
        // At once, so that no response ends a stream before the frame that is about it.
        session.client.write(frames.flatMap { $0.bytes() })
        session.expect(allowed, on: stream)
    }
}

/// The header block of a GET request.
let getBlock = HeaderBlock.literal(FrameClient.fields())
/// The header block of a POST request.
let postBlock = HeaderBlock.literal(FrameClient.fields("POST"))
/// HEADERS of a GET request, which ends its stream.
func getFrame(_ stream: UInt32 = 1) -> Frame { .headers(stream, getBlock) }
/// HEADERS of a POST request whose content follows.
func postFrame(_ stream: UInt32 = 1) -> Frame { .headers(stream, postBlock, endStream: false) }
