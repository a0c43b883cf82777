import URISyntax

/// The URL signatures of common CDNs, so that keys can omit them.
///
/// A signature counts only if all its parameters are present and have the right form: `Expires`
/// alone, or `token=7`, may select content and is kept. Parameters that accompany a signature and
/// select content (Tencent's `exper` and `plive`, Wowza's `wowzaplaystart`, S3's `versionId` and
/// `response-*`, Azure's `snapshot`) are not listed and are kept too.
package enum KeySignatures {
    /// The required form of a parameter's value.
    enum Shape: Sendable {
        case any
        /// Decimal digits, at least this many.
        case digits(Int)
        /// Hexadecimal digits, at least this many.
        case hex(Int)
        /// Base64 in any alphabet with `=`, `.`, `~` and escapes, at least this many bytes.
        case base64(Int)
        /// A pattern.
        case glob(KeyGlob)
        /// A Unix time of ten or eleven digits, this byte, and at least this many bytes more.
        case stamped(UInt8, Int)
        /// Fields joined by `~` that end with a MAC, escaped or not.
        case akamai

        func fits(_ value: ArraySlice<UInt8>) -> Bool {
            switch self {
            case .any: return true
            case .digits(let least):
                return value.count >= least && value.allSatisfy(ASCII.isDigit)
            case .hex(let least):
                return value.count >= least
                    && value.allSatisfy(ASCII.isHexDigit)
            case .base64(let least):
                return value.count >= least && value.allSatisfy(Self.isBase64)
            case .glob(let glob): return glob.matches(value)
            case .akamai: return KeySignatures.akamai.contains { $0.matches(value) }
            case .stamped(let separator, let least):
                let time = value.prefix(while: ASCII.isDigit)
                let rest = value[time.endIndex...]
                return (10...11).contains(time.count) && rest.first == separator
                    && rest.count > least
            }
        }

        private static func isBase64(_ byte: UInt8) -> Bool {
            if ASCII.isAlphanumeric(byte) { return true }
            return switch byte {
            case 0x2D, 0x5F, 0x3D, 0x2E, 0x7E, 0x25, 0x2B, 0x2F: true
            default: false
            }
        }
    }

    /// One kind of signature.
    struct Kind: Sendable {
        let name: String
        /// Parameters that must all be present, with their shapes.
        let needs: [(name: KeyGlob, shape: Shape)]
        /// Parameters of which at least one must be present, unless empty.
        var oneOf: [KeyGlob] = []
        /// Optional parameters of the signature.
        var also: [KeyGlob] = []

        init(
            _ name: String, needs: [(String, Shape)], oneOf: [String] = [], also: [String] = []
        ) {
            self.name = name
            self.needs = needs.map { (KeyGlob($0.0), $0.1) }
            self.oneOf = oneOf.map { KeyGlob($0) }
            self.also = also.map { KeyGlob($0) }
        }

        /// True if parameters with names of these lengths may be such a signature; false is
        /// certain, without comparing names.
        func mayHaveSigned(_ lengths: [Int]) -> Bool {
            needs.first.map { lengths.contains($0.name.length ?? lengths[0]) } ?? true
        }
    }

    private static let akamai = [KeyGlob("*hmac=*"), KeyGlob("*hmac%3D*"), KeyGlob("*hmac%3d*")]

    /// All kinds, in the order in which they are tried.
    ///
    /// The names are those of the vendors' documentation.
    static let kinds: [Kind] = [
        // AWS Signature Version 4 in the query, for S3 and compatible services.
        Kind(
            "s3",
            needs: [
                ("X-Amz-Signature", .hex(32)), ("X-Amz-Credential", .any), ("X-Amz-Date", .any),
            ],
            also: [
                "X-Amz-Algorithm", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Security-Token",
            ]),
        Kind(
            "google-storage",
            needs: [
                ("X-Goog-Signature", .hex(32)), ("X-Goog-Credential", .any), ("X-Goog-Date", .any),
            ], also: ["X-Goog-Algorithm", "X-Goog-Expires", "X-Goog-SignedHeaders"]),
        Kind(
            "s3-v2",
            needs: [
                ("Signature", .base64(20)), ("Expires", .digits(9)), ("AWSAccessKeyId", .any),
            ]),
        Kind(
            "google-storage-v2",
            needs: [
                ("Signature", .base64(20)), ("Expires", .digits(9)), ("GoogleAccessId", .any),
            ]),
        Kind(
            "cloudfront", needs: [("Signature", .base64(20)), ("Key-Pair-Id", .any)],
            oneOf: ["Expires", "Policy"], also: ["Hash-Algorithm"]),
        // Cloud CDN and Media CDN use the same names, Media CDN also a start.
        Kind(
            "google-cdn", needs: [("Signature", .base64(20)), ("KeyName", .any)],
            oneOf: ["Expires"], also: ["URLPrefix", "Starts"]),
        Kind(
            "azure-sas", needs: [("sig", .base64(20)), ("sv", .any)], oneOf: ["se", "si"],
            also: [
                "ss", "srt", "sr", "sp", "st", "spr", "sip", "sdd", "skoid", "sktid", "skt", "ske",
                "sks", "skv", "saoid", "suoid", "scid",
            ]),
        Kind("akamai", needs: [("hdnts", .akamai)]),
        Kind("akamai", needs: [("hdnea", .akamai)]),
        Kind("akamai", needs: [("hdntl", .akamai)]),
        Kind("akamai", needs: [("__token__", .akamai)]),
        Kind("akamai", needs: [("token", .akamai)]),
        Kind("google-cdn", needs: [("hdntl", .glob(KeyGlob("*Signature=*")))]),
        Kind("google-cdn", needs: [("edge-cache-token", .glob(KeyGlob("*Signature=*")))]),
        Kind("akamai-type-1", needs: [("__gda__", .stamped(0x5F, 20))]),
        Kind(
            "bunny", needs: [("token", .base64(20)), ("expires", .digits(9))],
            also: [
                "token_path", "token_countries", "token_countries_blocked", "token_ignore_params",
                "limit",
            ]),
        Kind("keycdn", needs: [("token", .base64(20)), ("expire", .digits(9))]),
        Kind("secure-link", needs: [("md5", .base64(15)), ("expires", .digits(9))]),
        Kind("fastly", needs: [("token", .stamped(0x5F, 40))]),
        Kind("alibaba", needs: [("auth_key", .stamped(0x2D, 32))]),
        Kind("tencent-live", needs: [("txSecret", .hex(32)), ("txTime", .hex(8))]),
        Kind(
            "tencent-vod", needs: [("sign", .hex(32)), ("t", .hex(8))],
            also: ["us", "rlimit", "whreg", "whref", "bkreg", "bkref"]),
        Kind(
            "wowza", needs: [("wowzatokenhash", .base64(20))],
            also: ["wowzatokenstarttime", "wowzatokenendtime"]),
    ]

    /// The first bytes of the first required parameter of each kind, one bit each.
    private static let firstBytes: (low: UInt64, high: UInt64) = {
        var bits: (low: UInt64, high: UInt64) = (0, 0)
        for name in kinds.compactMap({ $0.needs.first?.name.description.utf8.first }) {
            if name < 64 {
                bits.low |= 1 << UInt64(name)
            } else {
                bits.high |= 1 << UInt64(name - 64)
            }
        }
        return bits
    }()

    /// True if a parameter may begin a signature: it has the name of a kind's first required
    /// parameter, without which a URL has no signature.
    static func mayBegin(_ name: ArraySlice<UInt8>) -> Bool {
        guard let first = name.first, first < 128 else { return false }
        let bits =
            first < 64 ? firstBytes.low >> UInt64(first) : firstBytes.high >> UInt64(first - 64)
        return bits & 1 == 1 && kinds.contains { $0.needs.first?.name.matches(name) ?? true }
    }

    /// Patterns of path segments that are signatures.
    static let pathTokens: [(name: String, pattern: KeyGlob)] = [
        ("akamai", KeyGlob("hdnts=*hmac=*")), ("akamai", KeyGlob("hdntl=*hmac=*")),
        ("akamai", KeyGlob("hdnea=*hmac=*")), ("akamai", KeyGlob("exp=*~hmac=*")),
        ("akamai", KeyGlob("st=*~exp=*~hmac=*")), ("akamai", KeyGlob("__token__=*hmac=*")),
        ("google-cdn", KeyGlob("edge-cache-token=*")),
        ("google-cdn", KeyGlob("hdntl=*Signature=*")),
        ("bunny", KeyGlob("bcdn_token=*")),
    ]
}
