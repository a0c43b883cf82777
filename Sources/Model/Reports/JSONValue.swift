// JSON texts of the daemon's own pages (RFC 8259).
//
// Not Foundation's encoder: members keep their order, which it cannot promise (decision 19).
import Numbers

/// A JSON value.
package indirect enum JSONValue: Sendable, Equatable {
    case null
    case truth(Bool)
    case number(Int64)
    /// Written with at most three decimal places; null if not finite or too large.
    case fraction(Double)
    case text(String)
    case list([JSONValue])
    case object([Member])

    /// A member of an object.
    package struct Member: Sendable, Equatable {
        package let name: String
        package let value: JSONValue

        package init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// Returns a number, or null.
    package static func optional(_ number: Int64?) -> JSONValue { number.map(Self.number) ?? .null }

    /// Returns a fraction, or null.
    package static func optional(_ fraction: Double?) -> JSONValue {
        fraction.map(Self.fraction) ?? .null
    }

    /// The value as one line of text without a line end.
    package var encoded: String {
        var output = ""
        append(to: &output)
        return output
    }

    private func append(to output: inout String) {
        switch self {
        case .null: output += "null"
        case .truth(let isTrue): output += isTrue ? "true" : "false"
        case .number(let number): output += String(number)
        case .fraction(let value): Self.append(value, to: &output)
        case .text(let text): Self.append(text, to: &output)
        case .list(let values):
            output += "["
            for (index, value) in values.enumerated() {
                if index > 0 { output += "," }
                value.append(to: &output)
            }
            output += "]"
        case .object(let members):
            output += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { output += "," }
                Self.append(member.name, to: &output)
                output += ":"
                member.value.append(to: &output)
            }
            output += "}"
        }
    }

    private static func append(_ value: Double, to output: inout String) {
        let thousandths = (value * 1_000).rounded()
        guard thousandths.magnitude < 9e15 else { return output += "null" }
        let whole = Int64(thousandths)
        if whole < 0 { output += "-" }
        let (units, rest) = whole.magnitude.quotientAndRemainder(dividingBy: 1_000)
        output += String(units)
        guard rest > 0 else { return }
        var digits = String(rest + 1_000).dropFirst()
        while digits.last == "0" { digits = digits.dropLast() }
        output += "." + digits
    }

    private static func append(_ text: String, to output: inout String) {
        output += "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": output += "\\\""
            case "\\": output += "\\\\"
            case "\n": output += "\\n"
            case "\r": output += "\\r"
            case "\t": output += "\\t"
            // Control characters, and the line terminators of JavaScript that JSON permits in
            // strings.
            case "\u{0}"..."\u{1F}", "\u{7F}", "\u{2028}", "\u{2029}":
                output += "\\u" + String(scalar.value, radix: 16, width: 4)
            default: output.unicodeScalars.append(scalar)
            }
        }
        output += "\""
    }
}
