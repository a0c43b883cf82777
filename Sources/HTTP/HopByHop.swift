/// The fields that a proxy may pass on: all but those that speak of one connection only, which
/// are the well-known ones and whatever `Connection` names (RFC 9110 section 7.6.1).
package func endToEndFields(_ fields: Fields) -> Fields {
    var listed: [String] = []
    if fields.contains(.connection) {
        listed = fields.listMembers(.connection)
    }
    var kept = Fields()
    for index in 0..<fields.count {
        let line = fields.bytes(at: index)
        let isHop =
            hopByHopNames.contains { isName($0.lowercased[...], line.name) }
            || listed.contains { isName(Array($0.utf8)[...], line.name) }
        if !isHop { kept.append(nameBytes: line.name, valueBytes: line.value) }
    }
    return kept
}

private let hopByHopNames: [FieldName] = [
    .connection, .keepAlive, .proxyConnection, .proxyAuthenticate, .proxyAuthorization,
    .proxyAuthenticationInfo, .te, .trailer, .transferEncoding, .upgrade,
]

private func isName(_ name: ArraySlice<UInt8>, _ other: ArraySlice<UInt8>) -> Bool {
    name.count == other.count
        && name.elementsEqual(other, by: { ASCII.lower($0) == ASCII.lower($1) })
}
