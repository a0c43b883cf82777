// Fuzzes the requests of a connection: heads and bodies are cut at the same bytes, however the input
// arrives in pieces, and chunked bodies that the daemon writes are read as they were.
import HTTP

/// One request as the server understands it, or the refusal that ends the connection.
private enum Message: Equatable {
    case request(RequestHead, content: [UInt8])
    case refused(HTTPStatus)
}

/// Reads the requests of one input in pieces and as a whole (called by libFuzzer).
///
/// The first byte is the length of the pieces.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard let size = bytes.first else { return 0 }
    let input = Array(bytes.dropFirst())
    let expected = messages(input, pieces: input.count + 1)
    let found = messages(input, pieces: Int(size) + 1)
    precondition(found == expected, "\(found) in pieces, \(expected) at once")
    checkEncoding(input, pieces: Int(size) + 1)
    return 0
}

/// The requests of a connection on which so many bytes arrive at a time.
private func messages(_ input: [UInt8], pieces: Int) -> [Message] {
    var found: [Message] = []
    var parser = RequestParser()
    var body: (head: RequestHead, reader: BodyReader)?
    var waiting: [UInt8] = []
    var arrived = 0
    while true {
        do throws(RequestError) {
            if let (head, unread) = body {
                var reader = unread
                let consumed = try reader.take(waiting)
                waiting.removeFirst(consumed)
                body = (head, reader)
                if reader.isAtEnd {
                    found.append(.request(head, content: reader.content))
                    body = nil
                    continue
                }
            } else if case .head(let head, let consumed) = try parser.parse(waiting.span) {
                precondition(consumed > 0 && consumed <= waiting.count)
                waiting.removeFirst(consumed)
                body = (head, BodyReader(head.bodyFraming))
                continue
            }
        } catch {
            found.append(.refused(error.status))
            return found
        }
        guard arrived < input.count else { return found }
        let end = min(input.count, arrived + pieces)
        waiting += input[arrived..<end]
        arrived = end
    }
}

/// Collects the content of one request.
private struct BodyReader {
    private var left: Int64 = 0
    private var decoder: ChunkedDecoder?
    private(set) var content: [UInt8] = []

    init(_ framing: BodyFraming) {
        switch framing {
        case .none: break
        case .length(let length): left = length
        case .chunked: decoder = ChunkedDecoder()
        }
    }

    var isAtEnd: Bool { decoder?.isAtEnd ?? (left == 0) }

    /// Takes what belongs to it from the front of `bytes`; how much that was.
    mutating func take(_ bytes: [UInt8]) throws(RequestError) -> Int {
        guard decoder != nil else {
            let count = Int(min(left, Int64(bytes.count)))
            content += bytes[..<count]
            left -= Int64(count)
            return count
        }
        var taken = 0
        while taken < bytes.count || decoder?.isAtEnd == true {
            guard let step = try decoder?.decode(Array(bytes[taken...]).span) else { break }
            switch step {
            case .needsMore(let consumed): return taken + consumed
            case .content(let range):
                content += bytes[(taken + range.lowerBound)..<(taken + range.upperBound)]
                taken += range.upperBound
            case .end(let consumed): return taken + consumed
            }
        }
        return taken
    }
}

/// Checks that a chunk of these bytes, as the daemon frames it, is decoded to them.
private func checkEncoding(_ content: [UInt8], pieces: Int) {
    guard !content.isEmpty else { return }
    let digits = Array(String(content.count, radix: 16).utf8)
    let framed = digits + [0x0D, 0x0A] + content + Array("\r\n0\r\n\r\n".utf8)
    var reader = BodyReader(.chunked)
    var start = 0
    var waiting: [UInt8] = []
    while start < framed.count {
        let end = min(framed.count, start + pieces)
        waiting += framed[start..<end]
        start = end
        guard let consumed = try? reader.take(waiting) else {
            preconditionFailure("a chunk of our own is refused")
        }
        waiting.removeFirst(consumed)
    }
    precondition(reader.isAtEnd && reader.content == content, "a chunk of our own is read wrongly")
}
