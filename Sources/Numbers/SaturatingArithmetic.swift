/// Arithmetic that stays at the largest or smallest value instead of trapping or wrapping around:
/// for sums and products of numbers from outside whose ranges do not exclude an overflow.
extension FixedWidthInteger {
    /// The sum, held within the type's range.
    @inlinable
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// The difference, held within the type's range.
    @inlinable
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        // Without a sign there is no room below, with one the sign of `other` tells.
        return Self.isSigned && other < 0 ? .max : .min
    }

    /// The product, held within the type's range.
    @inlinable
    package func multipliedSaturated(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        guard overflows else { return product }
        return (self < 0) == (other < 0) ? .max : .min
    }

    /// The whole part of `value`, held within the type's range; 0 for NaN.
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
    /// The sum of all elements, held within the type's range.
    @inlinable
    package func saturatedSum() -> Element { reduce(0) { $0.addingSaturated($1) } }
}
