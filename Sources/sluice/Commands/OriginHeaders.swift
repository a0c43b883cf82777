import ArgumentParser

/// The request headers that commands take for an origin.
struct OriginHeaders: ParsableArguments {
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            "A request header for the origin; repeatable.", valueName: "Name: value"
        ))
    var lines: [String] = []

    func validate() throws { _ = try fields() }

    /// Splits the lines at their first colon.
    ///
    /// - Returns: names and values.
    /// - Throws: `ValidationError` for a line without a colon.
    func fields() throws -> [(name: String, value: String)] {
        try lines.map { line in
            guard let colon = line.firstIndex(of: ":") else {
                throw ValidationError("a header is written 'Name: value', not '\(line)'")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            return (name: String(line[..<colon]), value: String(value))
        }
    }
}
