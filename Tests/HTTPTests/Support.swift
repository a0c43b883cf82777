// Helpers that several test files of this target use.

import HTTP

/// The result of parsing, errors included, so that two runs can be compared.
enum ParseResult: Equatable {
    case incomplete
    case head(RequestHead, consumed: Int)
    case refused(RequestError)
}

/// Parses bytes in pieces as a connection does: each call gets all bytes received so far.
func parse(
    _ bytes: [UInt8], pieces cuts: [Int] = [], limits: RequestLimits = RequestLimits()
) -> ParseResult {
    var parser = RequestParser(limits: limits)
    for end in cuts + [bytes.count] {
        do throws(RequestError) {
            let outcome = try parser.parse(bytes.span.extracting(0..<end))
            if case .head(let head, let consumed) = outcome {
                return .head(head, consumed: consumed)
            }
        } catch {
            return .refused(error)
        }
    }
    return .incomplete
}

/// Parses text in one piece.
func parse(_ text: String, limits: RequestLimits = RequestLimits()) -> ParseResult {
    parse(Array(text.utf8), limits: limits)
}

extension ParseResult {
    var head: RequestHead? {
        if case .head(let head, _) = self { head } else { nil }
    }

    var status: UInt16? {
        if case .refused(let error) = self { error.status.rawValue } else { nil }
    }
}

/// Fields made from pairs.
func fields(_ lines: (String, String)...) -> Fields {
    var fields = Fields()
    for (name, value) in lines { fields.append(name, value) }
    return fields
}
