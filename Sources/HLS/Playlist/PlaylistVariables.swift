import URISyntax

/// The variables of one playlist, from one EXT-X-DEFINE line to the next (8216bis, 4.4.2.3).
struct PlaylistVariables {
    /// What players get of the line of a definition.
    enum Form: Hashable {
        /// The line as the origin wrote it.
        case asWritten
        /// NAME and VALUE instead of QUERYPARAM: the rewritten URL lacks the origin's query.
        case replaced(name: String, value: String)
    }

    private var known = Variables()
    /// Variables of a multivariant playlist that was not read.
    private var openImports: Set<String> = []
    /// The query parameters of the playlist's URL; nil until a definition needs one.
    private var queryParameters: [[UInt8]: [UInt8]]?

    /// The values by name.
    var values: [String: String] { known.values }

    /// Defines a variable.
    ///
    /// - Parameters:
    ///   - list: the attributes of the definition.
    ///   - line: the number of its line.
    ///   - url: the URL of the playlist.
    ///   - reading: tells the variables of the multivariant playlist.
    /// - Returns: the line for players that support variables.
    /// - Throws: the error of a playlist that players must not play, or whose variables are too
    ///   long.
    mutating func define(
        _ list: AttributeList, at line: Int, of url: AbsoluteURL, _ reading: PlaylistReading
    ) throws(PlaylistError) -> Form {
        if let name = list.text(of: "NAME") {
            let value = try expanded(list.bytes(of: "VALUE") ?? [], line)
            try define(name, as: value, line)
            return .asWritten
        }
        if let name = list.text(of: "IMPORT") {
            if let value = reading.inheritedVariables[name] {
                try define(name, as: value, line)
                return .asWritten
            }
            if reading.knowsMultivariant { throw .missingImport(line: line, name: name) }
            // Left to the player, which may have read the multivariant playlist.
            openImports.insert(name)
            return .asWritten
        }
        guard let name = list.text(of: "QUERYPARAM") else { return .asWritten }
        let parameters = queryParameters ?? Variables.queryParameters(of: url)
        queryParameters = parameters
        guard let bytes = parameters[Array(name.utf8)] else {
            throw .missingQueryParameter(line: line, name: name)
        }
        let value = PercentCoding.text(bytes[...])
        try define(name, as: value, line)
        return .replaced(name: name, value: value)
    }

    /// Returns the value of a definition with variables defined before it replaced.
    ///
    /// Replacement text is not scanned for further variables.
    private func expanded(
        _ value: ArraySlice<UInt8>, _ line: Int
    ) throws(PlaylistError) -> String {
        guard Variables.mayOccur(in: value) else { return PercentCoding.text(value) }
        switch known.expand(value) {
        case .text(let text): return PercentCoding.text(text[...])
        case .undefined(let name): throw undefined(name, at: line, Tag.Name.define.rawValue)
        case .tooLong: throw Self.tooLong(line)
        }
    }

    private mutating func define(
        _ name: String, as value: String, _ line: Int
    ) throws(PlaylistError) {
        // Clients must not play such a playlist, and those that do disagree on which value counts:
        // the daemon and the player would resolve links differently.
        guard known.define(name, as: value) else {
            throw .duplicateVariable(line: line, name: name)
        }
        guard known.byteCount <= PlaylistLimits.variableByteCount else {
            throw Self.tooLong(line)
        }
    }

    private static func tooLong(_ line: Int) -> PlaylistError {
        .variablesTooLong(line: line, limit: PlaylistLimits.variableByteCount)
    }

    /// Replaces the variables of a URI.
    func expand(_ text: ArraySlice<UInt8>) -> Variables.Expansion { known.expand(text) }

    /// Returns the error of a line that uses a variable without a value.
    func undefined(_ name: String, at line: Int, _ tag: String) -> PlaylistError {
        .undefinedVariable(
            line: line, tag: tag, name: name, isImported: openImports.contains(name))
    }
}
