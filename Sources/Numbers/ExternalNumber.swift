/// Numbers in text from outside: a playlist, a header field, a URL, JSON, a file.
///
/// Every number from outside is parsed by a function that takes its valid range, so that readers of
/// the code see which values later arithmetic has to expect. Only this type and `DecimalDigits`,
/// which reads bytes, convert text to numbers; `Fixtures/tools/numbers` checks the compiled objects
/// for that.
@usableFromInline
package enum ExternalNumber {
    /// The largest integer that is accepted from outside unless a smaller limit is known: 2^53 - 1.
    ///
    /// JavaScript players represent it exactly, and the sum of 1,000 of them fits in 64 bits.
    @inlinable
    package static var largest: Int { 1 << 53 - 1 }

    /// Parses an integer, with a leading `-` if negative.
    ///
    /// - Parameters:
    ///   - text: only digits of `radix`, without blanks and without a `+`.
    ///   - range: the valid values.
    ///   - radix: 10, or 16 for hexadecimal digits of either case.
    /// - Returns: the number; nil for any other text and outside of the range.
    @inlinable
    package static func integer<Number: FixedWidthInteger>(
        _ text: some StringProtocol, in range: ClosedRange<Number>, radix: Int = 10
    ) -> Number? {
        guard text.utf8.first != 0x2B, let number = Number(text, radix: radix),
            range.contains(number)
        else { return nil }
        return number
    }

    /// Parses a decimal number, with an optional fraction and exponent.
    ///
    /// - Returns: the number; nil for any other text, outside of the range and for NaN.
    package static func decimal(
        _ text: some StringProtocol, in range: ClosedRange<Double>
    ) -> Double? {
        guard let number = Double(text), range.contains(number) else { return nil }
        return number
    }
}
