package import ArgumentParser
import FoundationEssentials

/// A blocking client for the daemon's own pages.
package struct AdminClient: Sendable {
    /// Without a trailing slash.
    package let base: String
    package let token: String?
    /// A PEM file of an authority that is trusted besides the system's; nil for none.
    package let authority: String?
    /// The most seconds that a request takes: a purge reads the whole index.
    package var patience = 120

    package init(base: String, token: String?, authority: String? = nil) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.token = token
        self.authority = authority
    }

    /// The error message, and the exit code.
    package struct Failure: Error {
        package let message: String
        package let code: ExitCode
    }

    /// The result of a request.
    package enum Outcome {
        /// The body of a 2xx.
        case answered(String)
        /// Nothing listens at the address.
        case refused(Failure)
        case failed(Failure)
    }

    /// The most bytes of a response that are accepted: far more than the largest list or export
    /// has.
    private static let longestAnswer = 256 << 20

    /// Sends one request; blocks for `patience` at most.
    package func ask(_ method: String, _ path: String, sending content: [UInt8]? = nil) -> Outcome {
        var request = BlockingClient.Request(method, base + path)
        // Proves that the change is not requested by a page of another site.
        request.fields = ["Sluice-Request: 1"]
        if let token { request.fields.append("Authorization: Bearer \(token)") }
        request.content = content
        request.authority = authority
        request.milliseconds = patience * 1_000
        let page = "\(method) \(path.prefix { $0 != "?" })"
        do throws(BlockingClient.Failure) {
            let (answer, bytes) = try BlockingClient().body(
                of: request, upTo: Self.longestAnswer)
            return outcome(
                answer.status, String(decoding: bytes, as: UTF8.self), of: page,
                hasContent: content != nil)
        } catch {
            let message =
                switch error.kind {
                case .unanswered:
                    "the daemon at \(base) has not answered \(page) within \(patience) s; it "
                        + "may still be at work on it"
                case .stopped: "the daemon's answer to \(page) is longer than the limit"
                case .untrusted:
                    "the certificate of the daemon at \(base) is not trusted: \(error.reason); name its "
                        + "authority with --daemon-ca or SLUICE_DAEMON_CA"
                case .noAuthority:
                    "the file \(authority ?? "") holds no certificate of an authority, or cannot be "
                        + "read; name another with --daemon-ca or SLUICE_DAEMON_CA"
                case .refused:
                    "no daemon answers at \(base): \(error.reason); start it with `sluice serve`, or "
                        + "name the one that runs with --daemon"
                default: "no daemon answers at \(base): \(error.reason)"
                }
            let failure = Failure(
                message: "sluice: " + message,
                code: error.kind == .noAuthority ? .failure : ExitCodes.unreachable)
            return error.kind == .refused ? .refused(failure) : .failed(failure)
        }
    }

    /// Returns the result of an answer.
    ///
    /// - Parameters:
    ///   - status: its status.
    ///   - body: its text.
    ///   - page: the method and path of the request.
    ///   - hasContent: whether a 400 may be about the content of a file instead of an argument.
    /// - Returns: a failure unless the status is a 2xx.
    func outcome(
        _ status: Int, _ body: String, of page: String, hasContent: Bool = false
    ) -> Outcome {
        if (200..<300).contains(status) { return .answered(body) }
        // As the daemon answers a path that it does not know.
        if status == 404, body.contains("nothing is at this path") {
            let message =
                "the daemon at \(base) does not know \(page): it has another version than this "
                + "command (\(sluiceVersion)), or a base path that --daemon lacks"
            return .failed(Failure(message: "sluice: " + message, code: .failure))
        }
        var text = body
        while text.hasSuffix("\n") { text.removeLast() }
        if status == 401, token == nil { text += "; give it with --token or SLUICE_TOKEN" }
        return .failed(
            Failure(
                message: "sluice: the daemon answered \(status): \(text)",
                code: hasContent ? .failure : ExitCodes.refusal(status)))
    }

    /// Sends one request and returns the body of a 2xx; blocks as `ask` does.
    ///
    /// - Throws: `ExitCode` after printing the error to standard error.
    package func send(
        _ method: String, _ path: String, sending content: [UInt8]? = nil
    ) throws -> String {
        switch ask(method, path, sending: content) {
        case .answered(let text): return text
        case .refused(let failure), .failed(let failure):
            printError(failure.message)
            throw failure.code
        }
    }

    /// Requests the progress of what the daemon has been told to do; blocks as `ask` does.
    ///
    /// - Parameters:
    ///   - path: its page.
    ///   - advice: printed too if the daemon does not answer: what becomes of the work.
    /// - Returns: the text of the page.
    /// - Throws: `ExitCode` after printing the error to standard error.
    package func progress(_ path: String, orElse advice: String) throws -> String {
        do {
            return try send("GET", path)
        } catch let code as ExitCode where code == ExitCodes.unreachable {
            printError(advice)
            throw code
        }
    }
}

/// Returns a report as JSON for people and scripts: indented, with sorted names.
package func prettyJSON(_ report: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(report), as: UTF8.self)
}

/// Decodes a response of the API; one that does not fit comes from a daemon of another version.
///
/// A member such as `bytes_expected` is the property `bytesExpected`.
///
/// - Throws: `ExitCode` after printing the error to standard error.
package func decodeJSON<Value: Decodable>(_ text: String) throws -> Value {
    do {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Value.self, from: Data(text.utf8))
    } catch {
        printError(
            """
            sluice: the daemon's answer cannot be parsed; it may have another version than this \
            command (\(sluiceVersion)): \(error)
            """)
        throw ExitCode.failure
    }
}
