// A fixed set of field names that every field of every response is looked up in.
import URISyntax

/// Names indexed by length: the length alone decides most look-ups, and no name is copied.
package struct FieldNameSet: Sendable {
    private var namesOfLength: [[[UInt8]]] = []

    /// Creates a set of names in any spelling.
    package init(_ names: [String]) {
        for name in names.map({ $0.utf8.map(ASCII.lowercased) }) {
            while namesOfLength.count <= name.count { namesOfLength.append([]) }
            namesOfLength[name.count].append(name)
        }
    }

    /// True if the set has a name, ignoring case.
    package func contains(_ name: ArraySlice<UInt8>) -> Bool {
        guard name.count < namesOfLength.count else { return false }
        let candidates = namesOfLength[name.count]
        return !candidates.isEmpty
            && candidates.contains { ASCII.equalIgnoringCase($0.span, name.span) }
    }
}

extension Fields {
    /// Removes all fields with one of the names, and returns them; linear in the fields, also for thousands of names.
    package mutating func remove(_ names: Set<FieldName>) -> Fields {
        let removed = filtered { names.contains(FieldName($0.text)) }
        if !removed.isEmpty { self = filtered { !names.contains(FieldName($0.text)) } }
        return removed
    }

    /// Returns the fields whose names pass a test, in their order and byte for byte.
    package func filtered(_ isKept: (ArraySlice<UInt8>) -> Bool) -> Fields {
        var kept = Fields()
        for entry in entries where isKept(storage[entry.name]) {
            if kept.isEmpty { kept.reserve(lines: entries.count, bytes: storage.count) }
            kept.append(entry, of: storage)
        }
        return kept
    }

    /// True if every byte of every field is ASCII.
    package var isASCII: Bool { storage.allSatisfy { $0 < 0x80 } }
}
