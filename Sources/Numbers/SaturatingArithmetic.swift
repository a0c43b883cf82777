/// Arithmetic that saturates at the largest or smallest value instead of trapping or wrapping
/// around: for numbers from outside whose ranges do not exclude an overflow.
extension FixedWidthInteger {
    /// Returns the sum, clamped to the type's range.
    @inlinable
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// Returns the difference, clamped to the type's range.
    @inlinable
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        // Unsigned integers can only underflow; for signed ones the sign of `other` decides.
        return Self.isSigned && other < 0 ? .max : .min
    }

    /// Returns the product, clamped to the type's range.
    @inlinable
    package func multipliedSaturated(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        guard overflows else { return product }
        return (self < 0) == (other < 0) ? .max : .min
    }

    /// Creates the whole part of `value`, clamped to the type's range; 0 for NaN.
    @inlinable
    package init(saturating value: Double) {
        if let exact = Self(exactly: value.rounded(.towardZero)) {
            self = exact
        } else {
            self = value.isNaN ? 0 : value < 0 ? .min : .max
        }
    }
}

extension Sequence where Element: FixedWidthInteger {
    /// Returns the sum of all elements, clamped to the type's range.
    @inlinable
    package func saturatedSum() -> Element { reduce(0) { $0.addingSaturated($1) } }
}
