/// Checks AWS Signature Version 4 of a request (Authenticating Requests, AWS Signature Version 4).
struct SignatureFour {
    let keyID: String
    let secret: String
    let token: String?

    /// Whether a request is signed with the key, fields, query and body included.
    func fits(_ request: WireRequest, _ body: [UInt8]) -> Bool {
        let scheme = "AWS4-HMAC-SHA256 "
        guard let given = request["Authorization"], given.hasPrefix(scheme) else { return false }
        var parts: [String: String] = [:]
        for part in given.dropFirst(scheme.count).split(separator: ",") {
            let halves = trimmed(part).split(separator: "=", maxSplits: 1)
            if halves.count == 2 { parts[String(halves[0])] = String(halves[1]) }
        }
        guard let credential = parts["Credential"], credential.hasPrefix(keyID + "/"),
            let names = parts["SignedHeaders"], let signature = parts["Signature"],
            let time = request["x-amz-date"], let hash = request["x-amz-content-sha256"],
            request["x-amz-security-token"] == token
        else { return false }
        let scope = credential.dropFirst(keyID.count + 1).split(separator: "/").map(String.init)
        guard scope.count == 4, scope[3] == "aws4_request", time.hasPrefix(scope[0]) else {
            return false
        }
        if hash != "UNSIGNED-PAYLOAD", hash != SHA256.hex(SHA256.digest(body)) { return false }
        let signed = names.split(separator: ";").map(String.init)
        guard ["host", "x-amz-content-sha256", "x-amz-date"].allSatisfy(signed.contains),
            token == nil || signed.contains("x-amz-security-token"), signed == signed.sorted()
        else { return false }
        let halves = request.target.split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var canonical = "\(request.method)\n\(halves[0])\n"
        canonical += Self.query(halves.count > 1 ? halves[1] : "") + "\n"
        for name in signed { canonical += "\(name):\(request[name] ?? "")\n" }
        canonical += "\n\(names)\n\(hash)"
        let text =
            "AWS4-HMAC-SHA256\n\(time)\n\(scope.joined(separator: "/"))\n"
            + SHA256.hex(SHA256.digest(Array(canonical.utf8)))
        var key = Array("AWS4\(secret)".utf8)
        for part in scope { key = SHA256.hmac(key, part) }
        return SHA256.hex(SHA256.hmac(key, text)) == signature
    }

    /// Sorts names and encodes all but unreserved characters.
    private static func query(_ text: Substring) -> String {
        text.split(separator: "&").map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = halves.count > 1 ? halves[1] : ""
            return encoded(percentDecoded(halves[0]) ?? "") + "="
                + encoded(percentDecoded(value) ?? "")
        }.sorted().joined(separator: "&")
    }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x5F, 0x7E:
                return String(UnicodeScalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                return "%" + (digits.count == 1 ? "0" + digits : digits)
            }
        }.joined()
    }
}
