// What is left to send of one response in HTTP/2.
import HTTP
import Posix

/// What is left to send of one response.
///
/// An object: what a source does while it is asked may end the stream.
final class HTTP2Response {
    enum Step {
        /// So many bytes, and whether they are the last.
        case bytes(Int, isLast: Bool)
        case wait
        case end
        case broken
    }

    let status: HTTPStatus
    /// Bytes of content in all; nil where only its end will tell.
    var length: Int64?
    var bytes: ArraySlice<UInt8> = []
    var source: (any BodySource)?
    /// Bytes of content that went into frames.
    private(set) var sent: Int64 = 0
    /// Whether the source has been asked and has nothing now.
    var isWaiting = false
    /// Whether all content went into frames.
    private(set) var isWhole = false

    init(status: HTTPStatus) { self.status = status }

    /// Whether there is content at all.
    var hasContent: Bool { length != 0 }

    /// The head was all.
    func finish() { isWhole = true }

    /// Writes the next content into `room`, which is not empty.
    func fill(_ room: UnsafeMutableRawBufferPointer) -> Step {
        let limit = Int(min(Int64(room.count), length.map { $0 - sent } ?? .max))
        guard limit > 0 else { return end() }
        guard let source else {
            let part = bytes.prefix(limit)
            guard !part.isEmpty else { return end() }
            room.copyBytes(from: part)
            bytes = bytes.dropFirst(part.count)
            return advance(part.count)
        }
        while true {
            switch source.next(limit: limit) {
            case .bytes(let part):
                precondition(
                    !part.isEmpty && part.count <= limit,
                    "a source offered \(part.count) of \(limit) bytes")
                room.copyBytes(from: part)
                source.advance(by: part.count)
                return advance(part.count)
            case .file(let descriptor, let offset, let count):
                precondition(
                    count > 0 && count <= limit, "a source offered \(count) of \(limit) bytes")
                let part = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
                var fault: CInt = 0
                do throws(SystemError) {
                    let read = try readOnce(into: part, from: descriptor, at: offset)
                    if read > 0 {
                        source.advance(by: read)
                        return advance(read)
                    }
                } catch {
                    fault = error.code
                }
                guard source.recover(fromReadError: fault) else { return .broken }
            case .wait: return .wait
            case .end: return end()
            case .broken: return .broken
            }
        }
    }

    private func advance(_ count: Int) -> Step {
        sent += Int64(count)
        isWhole = sent == length
        return .bytes(count, isLast: isWhole)
    }

    /// The content is whole, if it is as long as was told.
    private func end() -> Step {
        if let length, sent < length { return .broken }
        isWhole = true
        return .end
    }
}
