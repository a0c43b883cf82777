/// Changes single attributes of a list and leaves the others unchanged byte for byte.
struct AttributeEdit {
    private struct Part {
        let name: ArraySlice<UInt8>
        /// The text from the name to the end of the value, quotes included.
        var bytes: [UInt8]
    }

    private var parts: [Part]

    init(_ list: AttributeList) {
        parts = list.map { attribute in
            var bytes = Array(list.bytes[attribute.name])
            bytes.append(0x3D)
            if attribute.isQuoted { bytes.append(0x22) }
            bytes.append(contentsOf: list.bytes[attribute.value])
            if attribute.isQuoted { bytes.append(0x22) }
            return Part(name: list.bytes[attribute.name], bytes: bytes)
        }
    }

    /// Removes every attribute of this name.
    mutating func remove(_ name: String) {
        parts.removeAll { $0.name.elementsEqual(name.utf8) }
    }

    /// Replaces an attribute's value, or appends the attribute; `value` includes its quotes, if
    /// any.
    mutating func set(_ name: String, _ value: String) {
        let bytes = Array("\(name)=\(value)".utf8)
        if let index = parts.firstIndex(where: { $0.name.elementsEqual(name.utf8) }) {
            parts[index].bytes = bytes
        } else {
            parts.append(Part(name: bytes[..<name.utf8.count], bytes: bytes))
        }
    }

    /// Appends the list, its parts separated by commas.
    func append(to output: inout [UInt8]) {
        for (index, part) in parts.enumerated() {
            if index > 0 { output.append(0x2C) }
            output.append(contentsOf: part.bytes)
        }
    }
}
