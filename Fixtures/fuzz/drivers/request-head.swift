// Fuzzes the request parser: pieces and the whole give the same head or the same error.
import HTTP

/// The result of parsing, for comparison.
private enum Outcome: Equatable {
    case parsed(ParseOutcome)
    case refused(HTTPStatus)
}

/// Parses one input in two pieces and as a whole (called by libFuzzer).
///
/// The first byte is the length of the first piece, so that the fuzzer chooses the split.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard let cut = bytes.first else { return 0 }
    let input = Array(bytes.dropFirst())
    var whole = RequestParser()
    let expected = parse(input[...], &whole)
    var pieces = RequestParser()
    let early = parse(input.prefix(Int(cut)), &pieces)
    if case .parsed(.incomplete) = early {
        let found = parse(input[...], &pieces)
        precondition(found == expected, "\(found) in pieces, \(expected) at once")
    } else if Int(cut) >= input.count {
        precondition(early == expected, "\(early) is not \(expected)")
    }
    if case .parsed(.head(let head, let consumed)) = expected {
        precondition(consumed <= input.count, "consumed \(consumed) of \(input.count)")
        for item in head.queryItems { _ = item.value() }
        _ = head.host
    }
    return 0
}

private func parse(_ input: ArraySlice<UInt8>, _ parser: inout RequestParser) -> Outcome {
    do throws(RequestError) {
        return .parsed(try parser.parse(input.span))
    } catch {
        return .refused(error.status)
    }
}
