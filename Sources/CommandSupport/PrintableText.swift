/// Makes text of others printable on a terminal.
package enum PrintableText {
    /// Replaces each character that a terminal acts on or that hides others, such as a line end,
    /// U+009B, which begins a control sequence, or a change of direction.
    package static func oneLine(_ text: String) -> String {
        replacing(text, where: isActive)
    }

    /// Does the same with the lines of a text, whose ends it keeps.
    package static func lines(_ text: String) -> String {
        replacing(text) { $0 != "\n" && isActive($0) }
    }

    private static func replacing(
        _ text: String, where isActive: (Unicode.Scalar) -> Bool
    ) -> String {
        guard text.unicodeScalars.contains(where: isActive) else { return text }
        return String(
            String.UnicodeScalarView(text.unicodeScalars.map { isActive($0) ? " " : $0 }))
    }

    private static func isActive(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x7F { return scalar.value < 0x20 }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}
