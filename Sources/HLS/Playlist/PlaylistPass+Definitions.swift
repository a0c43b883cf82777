import URISyntax

/// The handling of EXT-X-DEFINE (8216bis, 4.4.2.3) in a pass.
extension PlaylistPass {
    /// Defines a variable.
    ///
    /// QUERYPARAM is rewritten to NAME and VALUE, because the rewritten URL lacks the origin's
    /// query; the other forms are kept for players that support them.
    mutating func define(_ line: TagLine) throws(PlaylistError) {
        // Without resolving URIs no variables are needed.
        guard let resolver else { return }
        let list = attributes(of: line)
        if let name = list.text(of: "NAME") {
            let value = list.bytes(of: "VALUE") ?? []
            try define(name, as: try expanded(value, line), line)
        } else if let name = list.text(of: "IMPORT") {
            if let value = options.inheritedVariables[name] {
                try define(name, as: value, line)
            } else if options.knowsMultivariant {
                throw .missingImport(line: line.number, name: name)
            } else {
                // Left to the player, which may have read the multivariant playlist.
                openImports.insert(name)
                diagnose(line.number, .define, "imports '\(name)', which is not known")
            }
        } else if let name = list.text(of: "QUERYPARAM") {
            let parameters = queryParameters ?? Variables.queryParameters(of: resolver.base)
            queryParameters = parameters
            guard let bytes = parameters[Array(name.utf8)] else {
                throw .missingQueryParameter(line: line.number, name: name)
            }
            let value = PercentCoding.text(bytes[...])
            try define(name, as: value, line)
            return writeDefinition(name, value)
        } else {
            diagnose(line.number, .define, "has neither NAME, IMPORT nor QUERYPARAM")
        }
        copy(line.range)
    }

    /// Returns the value of a definition with variables defined before it replaced.
    ///
    /// Replacement text is not scanned for further variables.
    private func expanded(
        _ value: ArraySlice<UInt8>, _ line: TagLine
    ) throws(PlaylistError) -> String {
        guard Variables.mayOccur(in: value) else { return PercentCoding.text(value) }
        switch variables.expand(value) {
        case .text(let text): return PercentCoding.text(text[...])
        case .undefined(let name):
            throw undefined(name, at: line.number, Tag.Name.define.rawValue)
        case .tooLong: throw Self.tooLong(line)
        }
    }

    /// Returns the error of a line that uses a variable without a value.
    func undefined(_ name: String, at line: Int, _ tag: String) -> PlaylistError {
        .undefinedVariable(
            line: line, tag: tag, name: name, isImported: openImports.contains(name))
    }

    private mutating func define(
        _ name: String, as value: String, _ line: TagLine
    ) throws(PlaylistError) {
        // Clients must not play such a playlist, and those that do disagree on which value counts:
        // the daemon and the player would resolve links differently.
        guard variables.define(name, as: value) else {
            throw .duplicateVariable(line: line.number, name: name)
        }
        guard variables.byteCount <= PlaylistLimits.variableByteCount else {
            throw Self.tooLong(line)
        }
    }

    private static func tooLong(_ line: TagLine) -> PlaylistError {
        .variablesTooLong(line: line.number, limit: PlaylistLimits.variableByteCount)
    }

    private mutating func writeDefinition(_ name: String, _ value: String) {
        sink.write { output in
            output.append(contentsOf: "#EXT-X-DEFINE:NAME=\"\(name)\",VALUE=\"".utf8)
            for byte in value.utf8 {
                if byte == 0x22 || ASCII.isControl(byte) {
                    PercentCoding.append(byte, to: &output)
                } else {
                    output.append(byte)
                }
            }
            output.append(contentsOf: "\"\n".utf8)
        }
    }
}
