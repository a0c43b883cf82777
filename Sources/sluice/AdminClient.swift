/// A blocking client for the daemon's own pages, on libcurl.
import ArgumentParser
import CCurl
import FoundationEssentials

struct AdminClient {
    let base: String
    let token: String?

    /// Collects the answer's body.
    private final class Body {
        var bytes: [UInt8] = []
    }

    /// Sends one request and gives the body of a 200; blocks up to ten seconds.
    ///
    /// - Throws: `ExitCode` after having said on standard error what was wrong.
    func send(_ method: String, _ path: String) throws -> String {
        guard let easy = curl_easy_init() else { throw ExitCode.failure }
        defer { curl_easy_cleanup(easy) }
        let url = (base.hasSuffix("/") ? String(base.dropLast()) : base) + path
        let body = Body()
        var fields: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(fields) }
        if let token { fields = curl_slist_append(fields, "Authorization: Bearer \(token)") }
        _ = sluice_curl_set_string(easy, CURLOPT_URL, url)
        _ = sluice_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
        // The daemon is on this machine or a known one: no proxy of the environment in between.
        _ = sluice_curl_set_string(easy, CURLOPT_PROXY, "")
        _ = sluice_curl_set_long(easy, CURLOPT_TIMEOUT, 10)
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
        let result = withExtendedLifetime(body) { curl_easy_perform(easy) }
        guard result == CURLE_OK else {
            printError(
                "sluice: no daemon answers at \(base): \(String(cString: curl_easy_strerror(result)))"
            )
            throw ExitCodes.unreachable
        }
        let status = sluice_curl_info_long(easy, CURLINFO_RESPONSE_CODE)
        let text = String(decoding: body.bytes, as: UTF8.self)
        guard status == 200 else {
            printError("sluice: the daemon answered \(status): \(text)")
            throw ExitCode.failure
        }
        return text
    }
}

/// The figures as lines of `name value`, in the daemon's order.
struct StatsTable {
    let lines: [String]

    /// Reads the object of /api/stats: values are numbers, texts, or objects of numbers.
    init(json: String) {
        var lines: [String] = []
        var outer = ""
        var rest = json[...]
        while let open = rest.firstIndex(of: "\"") {
            rest = rest[rest.index(after: open)...]
            guard let close = rest.firstIndex(of: "\"") else { break }
            let name = String(rest[..<close])
            rest = rest[rest.index(after: close)...].dropFirst()
            if rest.first == "{" {
                outer = name + "."
                continue
            }
            let end = rest.firstIndex { $0 == "," || $0 == "}" } ?? rest.endIndex
            let value = rest[..<end].filter { $0 != "\"" }
            lines.append("\(outer)\(name) \(value)")
            let closesInner = end < rest.endIndex && rest[end] == "}"
            rest = rest[end...]
            if closesInner { outer = "" }
        }
        self.lines = lines
    }
}
