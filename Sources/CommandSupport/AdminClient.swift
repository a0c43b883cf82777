package import ArgumentParser
import CCurl
import FoundationEssentials

/// A blocking client for the daemon's own pages, on libcurl.
package struct AdminClient {
    /// Without a slash at its end.
    package let base: String
    package let token: String?

    package init(base: String, token: String?) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
        self.token = token
    }

    /// Collects the answer's body.
    private final class Body {
        var bytes: [UInt8] = []
    }

    /// What was wrong, for people, and how to end then.
    package struct Failure: Error {
        package let message: String
        package let code: ExitCode
    }

    /// What came of a request.
    package enum Outcome {
        /// The body of a 2xx.
        case answered(String)
        /// Nobody listens there.
        case refused(Failure)
        case failed(Failure)
    }

    /// Sends one request; blocks up to two minutes, since a purge reads the whole index.
    package func ask(_ method: String, _ path: String, sending content: [UInt8]? = nil) -> Outcome {
        guard let easy = curl_easy_init() else {
            return .failed(Failure(message: "sluice: libcurl fails", code: .failure))
        }
        defer { curl_easy_cleanup(easy) }
        var fields: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(fields) }
        if let token { fields = curl_slist_append(fields, "Authorization: Bearer \(token)") }
        let body = Body()
        set(easy, method, path, fields, body)
        if var content {
            // The size first: libcurl copies as many bytes (CURLOPT_COPYPOSTFIELDS(3)).
            _ = sluice_curl_set_offset(
                easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(content.count))
            content.withUnsafeMutableBytes {
                _ = sluice_curl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress)
            }
            _ = sluice_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
        }
        let result = withExtendedLifetime(body) { curl_easy_perform(easy) }
        guard result == CURLE_OK else {
            let reason = String(cString: curl_easy_strerror(result))
            let isLate = result == CURLE_OPERATION_TIMEDOUT && hasConnected(easy)
            let failure = Failure(
                message: isLate
                    ? "sluice: the daemon at \(base) has not answered \(method) "
                        + "\(path.prefix { $0 != "?" }) within two minutes; it may still be at work on it"
                    : "sluice: no daemon answers at \(base): \(reason)",
                code: ExitCodes.unreachable)
            return result == CURLE_COULDNT_CONNECT ? .refused(failure) : .failed(failure)
        }
        let status = sluice_curl_info_long(easy, CURLINFO_RESPONSE_CODE)
        var text = String(decoding: body.bytes, as: UTF8.self)
        if (200..<300).contains(status) { return .answered(text) }
        while text.hasSuffix("\n") { text.removeLast() }
        if status == 401 { text += "; give it with --token or SLUICE_TOKEN" }
        return .failed(
            Failure(message: "sluice: the daemon answered \(status): \(text)", code: .failure))
    }

    /// Whether a connection was made, so that somebody listens there.
    private func hasConnected(_ easy: UnsafeMutableRawPointer) -> Bool {
        sluice_curl_info_long(easy, CURLINFO_NUM_CONNECTS) > 0
    }

    private func set(
        _ easy: UnsafeMutableRawPointer, _ method: String, _ path: String,
        _ fields: UnsafeMutablePointer<curl_slist>?, _ body: Body
    ) {
        _ = sluice_curl_set_string(easy, CURLOPT_URL, base + path)
        _ = sluice_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
        // The daemon is on this machine or a known one: no proxy of the environment in between.
        _ = sluice_curl_set_string(easy, CURLOPT_PROXY, "")
        _ = sluice_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT, 5)
        _ = sluice_curl_set_long(easy, CURLOPT_TIMEOUT, 120)
        _ = sluice_curl_set_list(easy, CURLOPT_HTTPHEADER, fields)
        sluice_curl_set_write(
            easy,
            { bytes, size, count, context in
                guard let context, let bytes else { return 0 }
                let raw = UnsafeRawBufferPointer(start: bytes, count: size * count)
                Unmanaged<Body>.fromOpaque(context).takeUnretainedValue().bytes.append(
                    contentsOf: raw)
                return size * count
            }, Unmanaged.passUnretained(body).toOpaque())
    }

    /// Sends one request and gives the body of a 2xx; blocks as `ask`.
    ///
    /// - Throws: `ExitCode` after having said on standard error what was wrong.
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
}

/// Reads an answer of the API; one that does not fit comes from a daemon of another version.
///
/// - Throws: `ExitCode` after having said on standard error what was wrong.
package func decodeJSON<Value: Decodable>(_ text: String) throws -> Value {
    do {
        return try JSONDecoder().decode(Value.self, from: Data(text.utf8))
    } catch {
        printError("sluice: the answer cannot be read; is the daemon of another version? \(error)")
        throw ExitCode.failure
    }
}
