package import HTTP
import URISyntax

/// What Content-Encoding says of a body (RFC 9110 section 8.4).
package enum StatedCoding {
    private static let codings: Set = [
        "identity", "none", "gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd",
        "dcb", "dcz", "exi", "pack200-gzip", "aes128gcm",
    ]

    /// Returns the content coding; `aws-chunked`, which object stores keep of an upload whose
    /// coding they have undone, is none.
    private static func of(_ fields: Fields) -> String {
        guard let coding = fields.first(.contentEncoding), isReal(coding) else { return "identity" }
        return coding
    }

    /// True if two responses state the same coding of their bodies.
    package static func isSame(_ first: Fields, _ second: Fields) -> Bool {
        ASCII.equalIgnoringCase(of(first), of(second))
    }

    /// True if a field has members, none of which is a coding.
    package static func isNone(_ field: String) -> Bool {
        field.contains { !", \t".contains($0) } && !isReal(field)
    }

    /// True if any member of a field is a coding (RFC 9110 section 8.4.1), and not something else
    /// that a server names there.
    private static func isReal(_ field: String) -> Bool {
        field.split(separator: ",").contains {
            codings.contains(ASCII.lowercased($0.filter { $0 != " " && $0 != "\t" }))
        }
    }
}
