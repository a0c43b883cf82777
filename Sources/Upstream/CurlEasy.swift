// One libcurl easy handle with its options by type, and what it keeps alive for libcurl.
import CCurl
import Glibc
import HTTP

/// Owns the handle (curl_easy_init(3)); used on one thread.
final class CurlEasy {
    let handle: UnsafeMutableRawPointer
    private var lines: UnsafeMutablePointer<curl_slist>?
    private var resolved: UnsafeMutablePointer<curl_slist>?
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    /// What it was set up for last; nil where that was nothing that comes again.
    var form: Form?
    /// Where its TLS sessions are kept; nil for with itself.
    private var sessions: TLSSessions.Shelf?
    private var usesSessions = false
    /// The fields that its lines were made of; nil where there is more in them.
    var writtenFields: Fields?

    /// Nil when libcurl is out of memory.
    init?() {
        guard let made = curl_easy_init() else {
            errorText.deallocate()
            return nil
        }
        handle = made
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(lines)
        curl_slist_free_all(resolved)
        errorText.deallocate()
    }

    /// Back to the defaults, connections kept (curl_easy_reset(3)); not while a transfer runs.
    func reset() {
        curl_easy_reset(handle)
        // The reset takes back how many sessions there may be, though not where they are.
        usesSessions = false
        curl_slist_free_all(lines)
        lines = nil
        curl_slist_free_all(resolved)
        resolved = nil
        form = nil
        writtenFields = nil
        errorText[0] = 0
        set(CURLOPT_ERRORBUFFER, pointer: errorText)
    }

    /// Keeps TLS sessions where other handles find them; not while a transfer runs.
    func keepSessions(in shelf: TLSSessions.Shelf?) {
        guard let shelf, !usesSessions || shelf !== sessions else { return }
        set(CURLOPT_SHARE, pointer: shelf.handle)
        // The former one may go once libcurl has let go of it.
        sessions = shelf
        usesSessions = true
    }

    /// Forgets what libcurl said about an earlier transfer.
    func clearFailure() { errorText[0] = 0 }

    /// What libcurl said about the last failure; may name hosts and addresses.
    var failureText: String { String(cString: errorText) }

    // MARK: Options

    func set(_ option: CURLoption, _ value: Int) {
        require(option, sluice_curl_set_long(handle, option, value))
    }

    func set(_ option: CURLoption, flag: Bool) { set(option, flag ? 1 : 0) }

    func set(_ option: CURLoption, large value: Int64) {
        require(option, sluice_curl_set_offset(handle, option, curl_off_t(value)))
    }

    func set(_ option: CURLoption, _ value: String) {
        require(option, sluice_curl_set_string(handle, option, value))
    }

    /// Sets a string to none at all, where the default is one.
    func clear(_ option: CURLoption) {
        require(option, sluice_curl_set_string(handle, option, nil))
    }

    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
        require(option, sluice_curl_set_pointer(handle, option, pointer))
    }

    /// The request's body, copied by libcurl.
    func setBody(_ bytes: [UInt8]) {
        set(CURLOPT_POSTFIELDSIZE_LARGE, large: Int64(bytes.count))
        var bytes = bytes
        bytes.withUnsafeMutableBytes { set(CURLOPT_COPYPOSTFIELDS, pointer: $0.baseAddress) }
    }

    /// The request's field lines, without line ends or zero bytes, in place of former ones.
    func setFieldLines(_ texts: [[UInt8]]) {
        let former = lines
        lines = nil
        // Not before libcurl has the new ones.
        defer { curl_slist_free_all(former) }
        for text in texts { Self.append(text, to: &lines) }
        require(CURLOPT_HTTPHEADER, sluice_curl_set_list(handle, CURLOPT_HTTPHEADER, lines))
    }

    /// Fixed addresses, `host:port:address`.
    func setResolved(_ texts: [String]) {
        guard !texts.isEmpty else { return }
        for text in texts { Self.append(Array(text.utf8), to: &resolved) }
        require(CURLOPT_RESOLVE, sluice_curl_set_list(handle, CURLOPT_RESOLVE, resolved))
    }

    private static func append(
        _ text: [UInt8], to list: inout UnsafeMutablePointer<curl_slist>?
    ) {
        let longer = (text + [0]).withUnsafeBytes { raw in
            curl_slist_append(list, raw.assumingMemoryBound(to: CChar.self).baseAddress)
        }
        guard let longer else { preconditionFailure("out of memory for a field line") }
        list = longer
    }

    /// The size of one read.
    ///
    /// A handle whose last transfer failed may still hold its buffer; it then keeps that one and
    /// reads what libcurl reads by default.
    func setReceiveBuffer(_ bytes: Int) {
        let code = sluice_curl_set_long(handle, CURLOPT_BUFFERSIZE, bytes)
        if code != CURLE_BAD_FUNCTION_ARGUMENT { require(CURLOPT_BUFFERSIZE, code) }
    }

    /// A refused option is a fault of this program or a libcurl built without what we need.
    private func require(_ option: CURLoption, _ code: CURLcode) {
        precondition(
            code == CURLE_OK, "libcurl refused option \(option.rawValue): \(code.rawValue)")
    }

    // MARK: Facts

    func long(_ info: CURLINFO) -> Int { sluice_curl_info_long(handle, info) }

    func microseconds(_ info: CURLINFO) -> Int64 { Int64(sluice_curl_info_offset(handle, info)) }

    func string(_ info: CURLINFO) -> String? {
        sluice_curl_info_string(handle, info).map { String(cString: $0) }
    }
}
