// nghttp2's session and its callbacks (nghttp2.h).
import CNGHTTP2
import HTTP

/// The protocol state of one connection.
///
/// Holds its connection by an unretained pointer: the connection owns the session, and lives
/// through every call.
final class HTTP2Session {
    /// To be used through `session`, which restores its memory first.
    private let handle: OpaquePointer
    private let memory = SessionMemory()
    /// As `memory.isPacked`, where every call of the session tests it.
    @exclusivity(unchecked) private var isResting = false

    private var session: OpaquePointer {
        if isResting { restoreMemory() }
        return handle
    }

    @inline(never)
    private func restoreMemory() {
        memory.unpack()
        isResting = false
    }

    /// - Returns: nil if memory is short.
    init?(for connection: HTTP2Connection) {
        guard let callbacks = HTTP2Session.callbacks, let options = HTTP2Session.options else {
            return nil
        }
        var made: OpaquePointer?
        let holder = Unmanaged.passUnretained(connection).toOpaque()
        var functions = memory.functions
        guard nghttp2_session_server_new3(&made, callbacks, holder, options, &functions) == 0,
            let made
        else { return nil }
        memory.seal()
        handle = made
        let limits = connection.server.limits.request
        let settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
                value: HTTP2Connection.mostStreams),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                value: UInt32(clamping: limits.head)),
            // Priorities follow RFC 9218.
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), value: 1),
        ]
        guard nghttp2_submit_settings(session, 0, settings, settings.count) == 0 else {
            return nil
        }
    }

    deinit { nghttp2_session_del(session) }

    /// Gives back most of the memory until the session is next used.
    ///
    /// Must not be called within a callback of the session.
    func rest() {
        memory.pack(isFrameSent: nghttp2_session_want_write(session) == 0)
        isResting = memory.isPacked
    }

    // MARK: Bytes

    /// Processes received bytes.
    ///
    /// - Returns: false if the session fails without an error frame of its own.
    func receive(_ bytes: Span<UInt8>) -> Bool {
        bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return nghttp2_session_mem_recv(session, start, bytes.count) >= 0
        }
    }

    /// Collects frames until the output is full or there are none.
    ///
    /// - Returns: false if the session has failed.
    func collect(into output: FrameOutput) -> Bool {
        while !output.isFull {
            var frame: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &frame)
            if count <= 0 { return count == 0 }
            output.append(UnsafeRawBufferPointer(start: frame, count: count))
        }
        return true
    }

    /// True if the session has nothing more to read or write.
    var isOver: Bool {
        nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    // MARK: Commands

    /// Sends a head; `HTTP2Stream.fill` provides the content.
    func submit(_ fields: FieldBlock, on id: Int32, hasContent: Bool, isInterim: Bool) -> Bool {
        fields.withPairs { pairs in
            if isInterim {
                return nghttp2_submit_headers(
                    session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, pairs.baseAddress,
                    pairs.count, nil) == 0
            }
            guard hasContent else {
                return nghttp2_submit_response(
                    session, id, pairs.baseAddress, pairs.count, nil) == 0
            }
            var provider = nghttp2_data_provider()
            provider.read_callback = readContent
            return nghttp2_submit_response(
                session, id, pairs.baseAddress, pairs.count, &provider) == 0
        }
    }

    func resume(_ id: Int32) { nghttp2_session_resume_data(session, id) }

    func reset(_ id: Int32, _ code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    }

    /// Ends the connection with an error code.
    func terminate(_ code: nghttp2_error_code) {
        nghttp2_session_terminate_session(session, code.rawValue)
    }

    /// Accepts no new streams; existing ones continue (RFC 9113 section 6.8).
    func goAway() {
        let last = nghttp2_session_get_last_proc_stream_id(session)
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), last, NGHTTP2_NO_ERROR.rawValue, nil, 0)
    }

    /// Reports consumed content: both flow control windows grow.
    func consume(stream id: Int32, _ count: Int) { nghttp2_session_consume(session, id, count) }

    /// Reports discarded content of a stream that needs no more: only the connection's window
    /// grows.
    func consume(connection count: Int) {
        if count > 0 { nghttp2_session_consume_connection(session, count) }
    }

    /// Sets the urgency of a response whose request stated none.
    func prioritise(_ id: Int32, _ urgency: UInt32) {
        var priority = nghttp2_extpri(urgency: urgency, inc: 0)
        nghttp2_session_change_extpri_stream_priority(session, id, &priority, 0)
    }

    /// True if a stream's own window allows content to be sent on it now.
    func isWindowOpen(of id: Int32) -> Bool {
        nghttp2_session_get_stream_remote_window_size(session, id) > 0
    }

    /// True if the connection's window, which all streams share, allows content to be sent now.
    var isSharedWindowOpen: Bool { nghttp2_session_get_remote_window_size(session) > 0 }

    // MARK: Callbacks

    /// The maximum length of a response head in bytes; nghttp2's default is 64 KiB, and origins may
    /// send more.
    private static let mostHeadBytes = 2 << 20
    /// The most that the table of sent fields holds, as HPACK counts it (RFC 7541 section 4.1).
    ///
    /// It holds the fields that all responses have in common, some 640 octets; the date of each
    /// object and the like fill whatever there is. An octet takes two to three bytes of memory, for
    /// as long as the connection is open.
    private static let mostSentFields = 1_024

    // Safe: sessions only read it.
    nonisolated(unsafe) private static let options: OpaquePointer? = {
        var made: OpaquePointer?
        guard nghttp2_option_new(&made) == 0, let made else { return nil }
        // Windows grow when content is consumed.
        nghttp2_option_set_no_auto_window_update(made, 1)
        nghttp2_option_set_no_closed_streams(made, 1)
        nghttp2_option_set_max_send_header_block_length(made, mostHeadBytes)
        nghttp2_option_set_max_deflate_dynamic_table_size(made, mostSentFields)
        nghttp2_option_set_builtin_recv_extension_type(
            made, UInt8(NGHTTP2_PRIORITY_UPDATE.rawValue))
        return made
    }()

    // Safe: sessions copy it.
    nonisolated(unsafe) private static let callbacks: OpaquePointer? = {
        var made: OpaquePointer?
        guard nghttp2_session_callbacks_new(&made) == 0, let made else { return nil }
        nghttp2_session_callbacks_set_on_begin_frame_callback(made, onBeginFrame)
        nghttp2_session_callbacks_set_on_begin_headers_callback(made, onBeginHeaders)
        nghttp2_session_callbacks_set_on_header_callback(made, onHeader)
        nghttp2_session_callbacks_set_on_invalid_header_callback(made, onInvalidHeader)
        nghttp2_session_callbacks_set_on_frame_recv_callback(made, onFrame)
        nghttp2_session_callbacks_set_on_frame_send_callback(made, onFrameSent)
        nghttp2_session_callbacks_set_on_frame_not_send_callback(made, onFrameNotSent)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, onContent)
        nghttp2_session_callbacks_set_on_stream_close_callback(made, onStreamClose)
        nghttp2_session_callbacks_set_send_data_callback(made, sendContent)
        return made
    }()
}

private func connection(_ holder: UnsafeMutableRawPointer?) -> HTTP2Connection? {
    holder.map { Unmanaged<HTTP2Connection>.fromOpaque($0).takeUnretainedValue() }
}

/// Also called for frames that the session then ignores.
private let onBeginFrame: nghttp2_on_begin_frame_callback = { _, header, holder in
    guard let header, let connection = connection(holder) else { return 0 }
    switch UInt32(header.pointee.type) {
    case NGHTTP2_HEADERS.rawValue: connection.headersBegin()
    case NGHTTP2_CONTINUATION.rawValue: break
    case NGHTTP2_DATA.rawValue:
        let isEnd = header.pointee.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        if header.pointee.length == 0, !isEnd { connection.charge(1) }
    case NGHTTP2_RST_STREAM.rawValue: connection.charge(FrameAllowance.resetCost)
    case NGHTTP2_WINDOW_UPDATE.rawValue: connection.chargeUpdate()
    case NGHTTP2_PRIORITY.rawValue:
        connection.charge(1)
        // The session ignores these frames, on any stream (RFC 9113 section 6.3).
        if header.pointee.stream_id == 0 { connection.protocolFailed() }
    default: connection.charge(1)
    }
    return 0
}

private let onBeginHeaders: nghttp2_on_begin_headers_callback = { _, frame, holder in
    guard let frame, frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
    connection(holder)?.beginStream(frame.pointee.hd.stream_id)
    return 0
}

private let onHeader: nghttp2_on_header_callback = {
    _, frame, name, nameLength, value, valueLength, _, holder in
    guard let frame, let connection = connection(holder) else { return 0 }
    // Trailers are dropped.
    var isKept = false
    if frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
        connection.block?.add(
            UnsafeBufferPointer(start: name, count: nameLength),
            UnsafeBufferPointer(start: value, count: valueLength),
            limit: connection.server.limits.request.head)
        isKept = connection.block?.isTooLarge == false
    }
    if !isKept { connection.chargeFields(nameLength + valueLength) }
    return 0
}

/// An invalid field makes the request malformed (RFC 9113 section 8.2.1).
private let onInvalidHeader: nghttp2_on_invalid_header_callback = {
    session, frame, _, _, _, _, _, _ in
    guard let frame else { return 0 }
    nghttp2_submit_rst_stream(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), frame.pointee.hd.stream_id,
        NGHTTP2_PROTOCOL_ERROR.rawValue)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
}

private let onFrame: nghttp2_on_frame_recv_callback = { _, frame, holder in
    guard let frame, let connection = connection(holder) else { return 0 }
    let header = frame.pointee.hd
    let isEnd = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue:
        if frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
            connection.headArrived(header.stream_id, isEnd: isEnd)
        } else if isEnd {
            // Trailers.
            connection.contentEnded(header.stream_id)
        }
    case NGHTTP2_DATA.rawValue:
        if isEnd { connection.contentEnded(header.stream_id) }
    case NGHTTP2_SETTINGS.rawValue: connection.settingsArrived()
    case NGHTTP2_PRIORITY_UPDATE.rawValue:
        if let update = frame.pointee.ext.payload?.assumingMemoryBound(
            to: nghttp2_ext_priority_update.self)
        {
            connection.streams[update.pointee.stream_id]?.hasPriority = true
        }
    default: break
    }
    return 0
}

private let onFrameSent: nghttp2_on_frame_send_callback = { _, frame, holder in
    if let frame, UInt32(frame.pointee.hd.type) == NGHTTP2_RST_STREAM.rawValue {
        connection(holder)?.resetSent(frame.pointee.rst_stream.error_code)
    }
    return 0
}

/// The session drops a head that is too large; without a reset its stream would stay open for ever.
private let onFrameNotSent: nghttp2_on_frame_not_send_callback = { _, frame, error, holder in
    if let frame, UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue,
        error == NGHTTP2_ERR_FRAME_SIZE_ERROR.rawValue
    {
        connection(holder)?.headNotSent(frame.pointee.hd.stream_id)
    }
    return 0
}

private let onContent: nghttp2_on_data_chunk_recv_callback = { _, _, id, bytes, count, holder in
    connection(holder)?.contentArrived(id, UnsafeBufferPointer(start: bytes, count: count))
    return 0
}

private let onStreamClose: nghttp2_on_stream_close_callback = { _, id, _, holder in
    connection(holder)?.streamClosed(id)
    return 0
}

/// Gets content from a stream, written to its final place after the frame header.
private let readContent: nghttp2_data_source_read_callback = {
    session, id, _, length, flags, _, holder in
    let failed = Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    guard let connection = connection(holder), let stream = connection.streams[id],
        let output = connection.output, let flags
    else { return failed }
    switch stream.fill(output.room(for: length)) {
    case .bytes(let count, let isLast):
        connection.noteContent(count)
        flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if isLast {
            flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
            connection.responseEnded(stream)
        }
        return count
    case .end:
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        connection.responseEnded(stream)
        return 0
    case .wait: return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    case .broken:
        stream.isBroken = true
        return failed
    }
}

private let sendContent: nghttp2_send_data_callback = { _, frame, header, length, _, holder in
    guard let connection = connection(holder), let output = connection.output, let header else {
        return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
    }
    output.finishFrame(header, content: length)
    return output.isFull ? NGHTTP2_ERR_PAUSE.rawValue : 0
}
