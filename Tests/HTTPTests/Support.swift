// Helpers that several test files of this target use.

import HTTP

/// A random generator whose sequence is the same for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

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
