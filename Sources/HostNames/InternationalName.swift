import CIDN2

/// Host names beyond ASCII.
package enum InternationalName {
    /// The ASCII form that the DNS is asked for: lower case, labels beyond ASCII as `xn--` labels.
    ///
    /// Follows IDNA2008 (RFC 5891) with the mapping of UTS 46, non-transitional, as browsers and
    /// libcurl do: upper case, width and composed characters become one spelling, and the full stops
    /// of Chinese and Japanese separate labels. Returns nil for a name that these rules reject, such
    /// as one with an unassigned character or a label of over 63 bytes. Never blocks.
    package static func ascii(_ name: String) -> String? {
        // A C string would end at a zero byte and stand for another host.
        guard !name.utf8.contains(0) else { return nil }
        var encoded: UnsafeMutablePointer<CChar>?
        guard sluice_idn2_lookup(name, &encoded) == IDN2_OK.rawValue, let encoded else {
            return nil
        }
        defer { idn2_free(encoded) }
        return String(cString: encoded)
    }
}
