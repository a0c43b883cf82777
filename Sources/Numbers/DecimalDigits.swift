/// The result of parsing a run of decimal digits, read from bytes without building a string.
///
/// All parsers of numbers in fields, playlists, URLs and Sluice's own files use it.
@usableFromInline
package enum DecimalDigits<Number: FixedWidthInteger> {
    /// The number, from 0 to the limit.
    case value(Number)
    /// Only digits, but the number is above this limit.
    case overflow(Number)
    /// Empty, or with a byte that is not a digit.
    case malformed

    /// Parses all of `digits` as `1*DIGIT`.
    ///
    /// - Parameters:
    ///   - digits: the bytes.
    ///   - limit: the largest number that is valid.
    @inlinable
    package init(_ digits: some Sequence<UInt8>, upTo limit: Number) {
        var total: Number = 0
        var isEmpty = true
        var overflows = false
        for byte in digits {
            let digit = byte &- 0x30
            guard digit < 10 else {
                self = .malformed
                return
            }
            isEmpty = false
            let (product, first) = total.multipliedReportingOverflow(by: 10)
            let (sum, second) = product.addingReportingOverflow(Number(truncatingIfNeeded: digit))
            if first || second { overflows = true }
            total = sum
        }
        guard !isEmpty else {
            self = .malformed
            return
        }
        self = overflows || total > limit ? .overflow(limit) : .value(total)
    }

    /// The number; nil if it is too large or malformed.
    @inlinable
    package var number: Number? {
        if case .value(let number) = self { number } else { nil }
    }

    /// The number, or the limit if it is larger; nil if malformed.
    @inlinable
    package var saturated: Number? {
        switch self {
        case .value(let number): number
        case .overflow(let limit): limit
        case .malformed: nil
        }
    }
}

extension DecimalDigits<Int64> {
    /// Parses all of `digits` as `1*DIGIT`, up to `ExternalNumber.largest`.
    @inlinable
    package init(_ digits: some Sequence<UInt8>) {
        self.init(digits, upTo: Int64(ExternalNumber.largest))
    }
}

extension DecimalDigits: Equatable {}
extension DecimalDigits: Sendable where Number: Sendable {}

/// Appends a number in decimal, without building a string.
@inlinable
package func appendDecimal(_ number: Int64, to bytes: inout [UInt8]) {
    if number < 0 { bytes.append(0x2D) }
    // From the last digit backwards: one division by a constant for each.
    var digits = InlineArray<20, UInt8>(repeating: 0x30)
    var first = digits.count - 1
    var rest = number.magnitude
    while rest > 9 {
        digits[first] = 0x30 + UInt8(rest % 10)
        rest /= 10
        first -= 1
    }
    digits[first] = 0x30 + UInt8(rest)
    for index in first..<digits.count { bytes.append(digits[index]) }
}

/// Appends the last `width` decimal digits of a number that is not negative, with leading zeros.
@inlinable
package func appendDecimal(_ number: Int64, width: Int, to bytes: inout [UInt8]) {
    var unit: Int64 = 1
    for _ in 1..<width { unit *= 10 }
    while unit > 0 {
        bytes.append(0x30 + UInt8(truncatingIfNeeded: number / unit % 10))
        unit /= 10
    }
}

extension String {
    /// Creates the digits of a number with leading zeros, at least `width` characters.
    @inlinable
    package init(_ number: some BinaryInteger, radix: Int = 10, width: Int) {
        let digits = String(number, radix: radix)
        self.init(repeating: "0", count: Swift.max(0, width - digits.utf8.count))
        self += digits
    }
}
