// One libcurl easy handle with typed options, and the memory that libcurl refers to.
import CCurl
import Glibc
import HTTP

/// Owns the handle (curl_easy_init(3)); used on one thread.
final class CurlEasy {
    let handle: UnsafeMutableRawPointer
    private var lines: UnsafeMutablePointer<curl_slist>?
    private var resolved: UnsafeMutablePointer<curl_slist>?
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    /// The form of its last setup; nil if that cannot be reused.
    var form: Form?
    /// The shelf that it shares TLS sessions through; nil if it keeps them itself.
    private var sessions: TLSSessions.Shelf?
    private var usesSessions = false
    /// The fields that its field lines were made from; nil if it has none yet.
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

    /// Resets all options and keeps connections (curl_easy_reset(3)); not while a transfer runs.
    func reset() {
        curl_easy_reset(handle)
        // The reset drops the session limit, but not the share.
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

    /// Shares TLS sessions with other handles; not while a transfer runs.
    func keepSessions(in shelf: TLSSessions.Shelf?) {
        guard let shelf, !usesSessions || shelf !== sessions else { return }
        set(CURLOPT_SHARE, pointer: shelf.handle)
        // The former shelf may be freed only after libcurl has released it.
        sessions = shelf
        usesSessions = true
    }

    /// Clears libcurl's message about an earlier transfer.
    func clearFailure() { errorText[0] = 0 }

    /// libcurl's message about the last failure; may name hosts and addresses.
    var failureText: String { String(cString: errorText) }

    /// Frees what libcurl holds for a paused transfer that has ended, which cleaning up the handle
    /// does not; the handle cannot be used any more.
    ///
    /// libcurl 7.88 frees it at the end of a transfer whose connection no other one uses
    /// (`multi_done`): here one that opens an empty file.
    func freeHeldBytes() {
        reset()
        // A libcurl without that protocol loses them.
        let isPossible =
            sluice_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, "file") == CURLE_OK
        guard isPossible else { return }
        set(CURLOPT_NOSIGNAL, flag: true)
        set(CURLOPT_NOBODY, flag: true)
        set(CURLOPT_URL, "file:///dev/null")
        _ = curl_easy_perform(handle)
    }

    // MARK: Options

    func set(_ option: CURLoption, _ value: Int) {
        Self.require(option, sluice_curl_set_long(handle, option, value))
    }

    func set(_ option: CURLoption, flag: Bool) { set(option, flag ? 1 : 0) }

    func set(_ option: CURLoption, large value: Int64) {
        Self.require(option, sluice_curl_set_offset(handle, option, curl_off_t(value)))
    }

    func set(_ option: CURLoption, _ value: String) {
        Self.require(option, sluice_curl_set_string(handle, option, value))
    }

    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
        Self.require(option, sluice_curl_set_pointer(handle, option, pointer))
    }

    /// The request's body, copied by libcurl.
    func setBody(_ bytes: [UInt8]) {
        set(CURLOPT_POSTFIELDSIZE_LARGE, large: Int64(bytes.count))
        var bytes = bytes
        bytes.withUnsafeMutableBytes { set(CURLOPT_COPYPOSTFIELDS, pointer: $0.baseAddress) }
    }

    /// Sets the request's field lines, without line ends or zero bytes, replacing former ones.
    func setFieldLines(_ texts: [[UInt8]]) {
        let former = lines
        lines = nil
        // Freed only after libcurl has the new ones.
        defer { curl_slist_free_all(former) }
        for text in texts { Self.append(text, to: &lines) }
        Self.require(CURLOPT_HTTPHEADER, sluice_curl_set_list(handle, CURLOPT_HTTPHEADER, lines))
    }

    /// Sets fixed addresses, `host:port:address`.
    func setResolved(_ texts: [String]) {
        guard !texts.isEmpty else { return }
        for text in texts { Self.append(Array(text.utf8), to: &resolved) }
        Self.require(CURLOPT_RESOLVE, sluice_curl_set_list(handle, CURLOPT_RESOLVE, resolved))
    }

    /// Reads the status line of SHOUTcast stations, `ICY 200 OK`, as that of HTTP/1.0.
    func acceptStations() {
        Self.require(
            CURLOPT_HTTP200ALIASES,
            sluice_curl_set_list(handle, CURLOPT_HTTP200ALIASES, Self.stations))
    }

    /// The other spelling of a status line; never freed.
    // Safety: libcurl only reads the list, which is not changed once it is made.
    nonisolated(unsafe) private static let stations = curl_slist_append(
        nil, HeadParser.stationLine)

    private static func append(
        _ text: [UInt8], to list: inout UnsafeMutablePointer<curl_slist>?
    ) {
        let longer = (text + [0]).withUnsafeBytes { raw in
            curl_slist_append(list, raw.assumingMemoryBound(to: CChar.self).baseAddress)
        }
        guard let longer else { preconditionFailure("out of memory for a field line") }
        list = longer
    }

    /// Sets the size of one read.
    ///
    /// A handle whose last transfer failed may still hold its buffer; it then keeps that buffer,
    /// and reads as much as libcurl reads by default.
    func setReceiveBuffer(_ bytes: Int) {
        let code = sluice_curl_set_long(handle, CURLOPT_BUFFERSIZE, bytes)
        if code != CURLE_BAD_FUNCTION_ARGUMENT { Self.require(CURLOPT_BUFFERSIZE, code) }
    }

    /// Traps if an option is rejected: a bug of this program, or a libcurl built without a needed
    /// feature.
    static func require(_ option: CURLoption, _ code: CURLcode) {
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
