import ArgumentParser

/// Request headers as they are given on the command line.
enum HeaderArgument {
    /// Cuts `Name: value`.
    ///
    /// - Parameter text: the argument.
    /// - Returns: the name of the entry URL's argument that stands for it, and the value.
    /// - Throws: `ValidationError` where there is no colon.
    static func entryItem(_ text: String) throws -> (name: String, value: String) {
        guard let colon = text.firstIndex(of: ":") else {
            throw ValidationError("a header is written 'Name: value', not '\(text)'")
        }
        return ("h_\(text[..<colon])", String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
