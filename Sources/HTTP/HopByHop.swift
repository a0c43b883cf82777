import URISyntax

/// Returns the fields that a proxy may forward: all except hop-by-hop fields, which are the
/// well-known ones and those that `Connection` names (RFC 9110 section 7.6.1).
package func endToEndFields(_ fields: Fields) -> Fields {
    // Sets, since a hostile `Connection` may name thousands.
    var listed: Set<FieldName> = []
    if fields.contains(.connection) {
        listed = Set(fields.listMembers(.connection).map { FieldName($0) })
    }
    return fields.filtered { name in
        !hopByHopNames.contains(name) && (listed.isEmpty || !listed.contains(FieldName(name.text)))
    }
}

private let hopByHopNames = FieldNameSet([
    "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
    "Proxy-Authentication-Info", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
])

extension Fields {
    /// Returns true if `Connection` has an option; builds no strings, since there may be thousands.
    package func hasConnectionOption(_ option: String) -> Bool {
        guard let value = combinedBytes(.connection) else { return false }
        return FieldCursor.members(of: value[...]).contains {
            ASCII.equalIgnoringCase($0.span, option.utf8.span)
        }
    }
}
