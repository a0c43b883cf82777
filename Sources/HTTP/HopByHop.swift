/// The fields that a proxy may pass on: all but those that speak of one connection only, which
/// are the well-known ones and whatever `Connection` names (RFC 9110 section 7.6.1).
package func endToEndFields(_ fields: Fields) -> Fields {
    // Sets, since a hostile `Connection` may name thousands.
    var listed: Set<FieldName> = []
    if fields.contains(.connection) {
        listed = Set(fields.listMembers(.connection).map { FieldName($0) })
    }
    var kept = Fields()
    for index in 0..<fields.count {
        let line = fields.bytes(at: index)
        let name = FieldName(line.name.text)
        guard !hopByHopNames.contains(name), !listed.contains(name) else { continue }
        kept.append(nameBytes: line.name, valueBytes: line.value)
    }
    return kept
}

private let hopByHopNames: Set<FieldName> = [
    .connection, .keepAlive, .proxyConnection, .proxyAuthenticate, .proxyAuthorization,
    .proxyAuthenticationInfo, .te, .trailer, .transferEncoding, .upgrade,
]
