// The state of one HTTP/2 response that is being sent.
import HTTP
import Posix

/// One response that is being sent.
///
/// A class, because a call to the source may end the stream.
final class HTTP2Response {
    enum Step {
        /// This many bytes, and whether they are the last.
        case bytes(Int, isLast: Bool)
        case wait
        case end
        case broken
    }

    let status: HTTPStatus
    /// The length of the content in bytes; nil if only its end determines it.
    var length: Int64?
    var bytes: ArraySlice<UInt8> = []
    var source: (any BodySource)?
    /// The bytes of content put into frames.
    private(set) var sent: Int64 = 0
    /// True after the source had nothing to offer, until it calls `wake`.
    var isWaiting = false
    /// True once all content was put into frames.
    private(set) var isWhole = false

    init(status: HTTPStatus) { self.status = status }

    /// True if the response has content.
    var hasContent: Bool { length != 0 }

    /// Marks a response without content as complete.
    func finish() { isWhole = true }

    /// Writes the next content into `room`, which must not be empty.
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

    /// Ends the content if it has the announced length.
    private func end() -> Step {
        if let length, sent < length { return .broken }
        isWhole = true
        return .end
    }
}
