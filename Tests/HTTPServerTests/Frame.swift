// HTTP/2 frames and header blocks as bytes, well formed or not (RFC 9113, section 4; RFC 7541).
import CNGHTTP2

/// One frame; nothing in it is checked, so that malformed ones can be written.
struct Frame: Equatable {
    var type: UInt8
    var flags: UInt8 = 0
    /// The stream's number; the highest bit is the reserved one.
    var stream: UInt32 = 0
    var payload: [UInt8] = []

    /// Frame types (RFC 9113, section 6; RFC 9218, section 7.1).
    enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let priority: UInt8 = 2
        static let reset: UInt8 = 3
        static let settings: UInt8 = 4
        static let pushPromise: UInt8 = 5
        static let ping: UInt8 = 6
        static let goAway: UInt8 = 7
        static let windowUpdate: UInt8 = 8
        static let continuation: UInt8 = 9
        static let priorityUpdate: UInt8 = 0x10
    }

    /// Bits of the flags.
    enum Flag {
        static let acknowledgement: UInt8 = 0x1
        static let endStream: UInt8 = 0x1
        static let endHeaders: UInt8 = 0x4
        static let padded: UInt8 = 0x8
        static let priority: UInt8 = 0x20
    }

    /// Identifiers of settings (RFC 9113, section 6.5.2).
    enum Setting {
        static let headerTableSize: UInt16 = 1
        static let enablePush: UInt16 = 2
        static let maxConcurrentStreams: UInt16 = 3
        static let initialWindowSize: UInt16 = 4
        static let maxFrameSize: UInt16 = 5
        static let maxHeaderListSize: UInt16 = 6
    }

    /// The frame as it is sent; `length` stands in for the payload's true length.
    func bytes(length: Int? = nil) -> [UInt8] {
        let length = UInt32(length ?? payload.count)
        return length.bigEndianBytes.dropFirst() + [type, flags] + stream.bigEndianBytes + payload
    }

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }

    /// The payload of DATA or HEADERS without padding and priority; nil if they overrun it.
    var content: ArraySlice<UInt8>? {
        var rest = payload[...]
        var padding = 0
        if has(Flag.padded) {
            guard let count = rest.popFirst() else { return nil }
            padding = Int(count)
        }
        if type == Kind.headers, has(Flag.priority) {
            guard rest.count >= 5 else { return nil }
            rest = rest.dropFirst(5)
        }
        return padding <= rest.count ? rest.dropLast(padding) : nil
    }
}

extension Frame {
    static func data(_ stream: UInt32, _ bytes: [UInt8], endStream: Bool = false) -> Frame {
        Frame(
            type: Kind.data, flags: endStream ? Flag.endStream : 0, stream: stream, payload: bytes)
    }

    static func headers(
        _ stream: UInt32, _ block: [UInt8], endStream: Bool = true, endHeaders: Bool = true
    ) -> Frame {
        let flags = (endStream ? Flag.endStream : 0) | (endHeaders ? Flag.endHeaders : 0)
        return Frame(type: Kind.headers, flags: flags, stream: stream, payload: block)
    }

    static func continuation(
        _ stream: UInt32, _ block: [UInt8], endHeaders: Bool = true
    ) -> Frame {
        Frame(
            type: Kind.continuation, flags: endHeaders ? Flag.endHeaders : 0, stream: stream,
            payload: block)
    }

    /// PRIORITY; its weight is one less than the one meant.
    static func priority(_ stream: UInt32, dependsOn other: UInt32, weight: UInt8 = 15) -> Frame {
        Frame(type: Kind.priority, stream: stream, payload: other.bigEndianBytes + [weight])
    }

    static func reset(_ stream: UInt32, _ code: ErrorCode = .cancel) -> Frame {
        Frame(type: Kind.reset, stream: stream, payload: code.rawValue.bigEndianBytes)
    }

    static func settings(_ values: [(UInt16, UInt32)] = []) -> Frame {
        let payload = values.flatMap { identifier, value in
            Array(UInt32(identifier).bigEndianBytes[2...]) + value.bigEndianBytes
        }
        return Frame(type: Kind.settings, payload: payload)
    }

    static let settingsAcknowledgement = Frame(type: Kind.settings, flags: Flag.acknowledgement)

    static func ping(_ opaque: [UInt8] = [0, 1, 2, 3, 4, 5, 6, 7]) -> Frame {
        Frame(type: Kind.ping, payload: opaque)
    }

    static func goAway(last: UInt32, _ code: UInt32 = 0, debug: [UInt8] = []) -> Frame {
        Frame(
            type: Kind.goAway, payload: last.bigEndianBytes + code.bigEndianBytes + debug)
    }

    static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> Frame {
        Frame(type: Kind.windowUpdate, stream: stream, payload: increment.bigEndianBytes)
    }

    /// PRIORITY_UPDATE with a Priority field value such as `u=1, i` (RFC 9218, section 7.1).
    static func priorityUpdate(_ stream: UInt32, _ value: String) -> Frame {
        Frame(type: Kind.priorityUpdate, payload: stream.bigEndianBytes + Array(value.utf8))
    }
}

/// An error code of RFC 9113, section 7, or one that it does not define.
struct ErrorCode: RawRepresentable, Hashable, CustomStringConvertible {
    var rawValue: UInt32

    static let noError = ErrorCode(rawValue: 0x0)
    static let protocolError = ErrorCode(rawValue: 0x1)
    static let flowControlError = ErrorCode(rawValue: 0x3)
    static let streamClosed = ErrorCode(rawValue: 0x5)
    static let frameSizeError = ErrorCode(rawValue: 0x6)
    static let refusedStream = ErrorCode(rawValue: 0x7)
    static let cancel = ErrorCode(rawValue: 0x8)
    static let compressionError = ErrorCode(rawValue: 0x9)
    static let enhanceYourCalm = ErrorCode(rawValue: 0xB)

    var description: String { "error 0x\(String(rawValue, radix: 16))" }
}

/// Header blocks written by hand (RFC 7541, sections 5 and 6).
enum HeaderBlock {
    /// Fields as literals without indexing and without Huffman coding.
    static func literal(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { name, value in [0x00] + string(name) + string(value) }
    }

    /// A field of the static or the dynamic table.
    static func indexed(_ index: Int) -> [UInt8] { integer(index, prefix: 7, pattern: 0x80) }

    /// A change of the dynamic table's size.
    static func tableSize(_ size: Int) -> [UInt8] { integer(size, prefix: 5, pattern: 0x20) }

    /// A literal that enters the dynamic table.
    static func indexing(_ name: String, _ value: String) -> [UInt8] {
        [0x40] + string(name) + string(value)
    }

    static func string(_ text: String) -> [UInt8] {
        integer(text.utf8.count, prefix: 7, pattern: 0) + Array(text.utf8)
    }

    static func integer(_ value: Int, prefix: Int, pattern: UInt8) -> [UInt8] {
        let most = 1 << prefix - 1
        if value < most { return [pattern | UInt8(value)] }
        var bytes = [pattern | UInt8(most)]
        var rest = value - most
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}

/// Decodes the header blocks of one connection, in the order in which they arrived.
final class HeaderDecoder {
    private var inflater: OpaquePointer?

    init() {
        precondition(nghttp2_hd_inflate_new(&inflater) == 0, "no memory for a header decoder")
    }

    deinit { nghttp2_hd_inflate_del(inflater) }

    /// Follows the SETTINGS_HEADER_TABLE_SIZE that the client sent.
    func setTableSize(_ size: UInt32) {
        precondition(nghttp2_hd_inflate_change_table_size(inflater, Int(size)) == 0)
    }

    /// The size of the dynamic table, which is the encoder's as well (RFC 7541, section 4.1).
    var tableSize: Int { nghttp2_hd_inflate_get_dynamic_table_size(inflater) }

    /// The fields of a whole block; nil if it cannot be decoded.
    func decode(_ block: [UInt8]) -> [HeaderField]? {
        var fields: [HeaderField] = []
        var rest = block[...]
        while true {
            var pair = nghttp2_nv()
            var flags: CInt = 0
            let used = rest.withUnsafeBufferPointer {
                nghttp2_hd_inflate_hd2(inflater, &pair, &flags, $0.baseAddress, $0.count, 1)
            }
            guard used >= 0 else { return nil }
            rest = rest.dropFirst(used)
            if flags & CInt(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                let name = UnsafeBufferPointer(start: pair.name, count: pair.namelen)
                let value = UnsafeBufferPointer(start: pair.value, count: pair.valuelen)
                fields.append(
                    HeaderField(
                        name: String(decoding: name, as: UTF8.self),
                        value: String(decoding: value, as: UTF8.self)))
            }
            if flags & CInt(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
        }
    }
}

struct HeaderField: Equatable {
    var name: String
    var value: String
}

extension UInt32 {
    var bigEndianBytes: [UInt8] {
        [UInt8(self >> 24), UInt8(self >> 16 & 0xFF), UInt8(self >> 8 & 0xFF), UInt8(self & 0xFF)]
    }

    /// Reads four bytes of a collection that has them.
    init(bigEndian bytes: ArraySlice<UInt8>) {
        self = bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}
