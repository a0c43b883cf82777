import ArgumentParser

/// Parses request headers on the command line.
enum HeaderArgument {
    /// Splits `Name: value`.
    ///
    /// - Parameter text: the argument.
    /// - Returns: the name of the corresponding query argument of an entry URL, and the value.
    /// - Throws: `ValidationError` if there is no colon.
    static func entryItem(_ text: String) throws -> (name: String, value: String) {
        guard let colon = text.firstIndex(of: ":") else {
            throw ValidationError("a header is written 'Name: value', not '\(text)'")
        }
        return ("h_\(text[..<colon])", String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
