/// Numbers in text that somebody else wrote: a playlist, a header field, a URL, JSON, a file.
///
/// Every number from outside is read through a function that takes the range in which it is valid,
/// so that a reader of the code sees which values later arithmetic has to expect. Text becomes a
/// number only here and in `DecimalDigits`, which reads bytes; `Fixtures/tools/numbers` checks the compiled
/// objects for it.
@usableFromInline
package enum OutsideNumber {
    /// The largest integer that is taken from outside, where no smaller limit is known: 2^53 - 1.
    ///
    /// JavaScript players represent it exactly, and 1,000 of them can be added up in 64 bits.
    @inlinable
    package static var largest: Int { 1 << 53 - 1 }

    /// Reads an integer, with a `-` in front where the range has negative numbers.
    ///
    /// - Parameters:
    ///   - text: nothing but digits of `radix`; neither blanks nor a `+`.
    ///   - range: the values that are valid.
    ///   - radix: 10, or 16 for hexadecimal digits of either case.
    /// - Returns: the number; nil for any other text and outside of the range.
    package static func integer<Number: FixedWidthInteger>(
        _ text: some StringProtocol, in range: ClosedRange<Number>, radix: Int = 10
    ) -> Number? {
        guard text.utf8.first != 0x2B, let number = Number(text, radix: radix),
            range.contains(number)
        else { return nil }
        return number
    }

    /// Reads a decimal number, with a fraction and an exponent if there are any.
    ///
    /// - Returns: the number; nil for any other text, outside of the range and for NaN.
    package static func decimal(
        _ text: some StringProtocol, in range: ClosedRange<Double>
    ) -> Double? {
        guard let number = Double(text), range.contains(number) else { return nil }
        return number
    }
}
