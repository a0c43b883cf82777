// Where the second level is: a bucket of an S3-compatible store, and the URLs of what is in it.
package import URISyntax

/// A bucket and the prefix in it that one group of daemons uses.
package struct BucketLocation: Sendable, Hashable {
    /// What is wrong with the text of a location; holds no secret.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package let bucket: String
    /// The start of all names; empty, or ends with `/`.
    package let prefix: String
    package let region: String
    /// The server: scheme, host and port.
    package let endpoint: Origin
    /// True puts the bucket into the host name, false into the path.
    package let usesBucketHost: Bool

    /// Parses `s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME&style=path|host]`.
    ///
    /// Without an endpoint it is that of AWS for the region, which is `us-east-1` unless given.
    package init(_ text: String) throws(Fault) {
        let form = "it is written s3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=NAME"
        guard text.hasPrefix("s3://"), text.utf8.count <= 2_048 else { throw Fault(form) }
        let parts = text.dropFirst(5).split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        bucket = String(path[0])
        guard Self.isBucketName(bucket) else {
            throw Fault(
                "a bucket has 3 to 63 lower-case letters, digits, hyphens and dots; \(form)")
        }
        let prefix = path.count > 1 ? String(path[1]) : ""
        guard prefix.utf8.count <= 512, prefix.utf8.allSatisfy(Self.isNameByte),
            !prefix.split(separator: "/", omittingEmptySubsequences: false).dropLast()
                .contains(where: { $0.isEmpty || $0 == "." || $0 == ".." })
        else {
            throw Fault("a prefix has letters, digits and -._~ between single slashes")
        }
        self.prefix = prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/"
        var settings: [String: String] = [:]
        for pair in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(halves[0])
            guard ["endpoint", "region", "style"].contains(name) else {
                throw Fault("endpoint, region and style can be set, not '\(name)'")
            }
            settings[name] = PercentCoding.decode(halves.count > 1 ? halves[1] : "")
        }
        region = settings["region"] ?? "us-east-1"
        guard !region.isEmpty, region.utf8.count <= 64,
            region.utf8.allSatisfy({ Self.isNameByte($0) && $0 != 0x2F })
        else { throw Fault("a region is a name such as us-east-1") }
        switch settings["style"] ?? "path" {
        case "path": usesBucketHost = false
        case "host": usesBucketHost = true
        default: throw Fault("style is path or host")
        }
        let address = settings["endpoint"] ?? "https://s3.\(region).amazonaws.com"
        guard let url = try? AbsoluteURL(address), url.userinfo == nil, url.query == nil,
            url.path.isEmpty || url.path == "/"
        else {
            throw Fault("an endpoint is http[s]://HOST[:PORT], without path, query and password")
        }
        endpoint = url.origin
        guard self.url(of: SharedNames.probe) != nil else { throw Fault(form) }
    }

    /// The names that AWS allows (Bucket naming rules, general purpose buckets).
    private static func isBucketName(_ name: String) -> Bool {
        (3...63).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x2E
            }
            && name.utf8.first != 0x2D && name.utf8.first != 0x2E
            && name.utf8.last != 0x2D && name.utf8.last != 0x2E
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        PercentCoding.Allowed.unreserved.contains(byte) || byte == 0x2F
    }

    /// The host that requests go to, as in `Origin.host`.
    package var host: String { usesBucketHost ? "\(bucket).\(endpoint.host)" : endpoint.host }

    /// Scheme, host and port that requests go to.
    package var server: String {
        guard usesBucketHost else { return "\(endpoint)" }
        return "\(endpoint)".replacing("://", with: "://\(bucket).", maxReplacements: 1)
    }

    /// The URL of an object or, with an empty name, of the bucket.
    ///
    /// The query is sorted and encoded as Signature Version 4 has it, since libcurl before 8.3 signs
    /// it as it is.
    ///
    /// - Parameters:
    ///   - name: the name after the prefix; nil for the bucket itself.
    ///   - query: names and values, in any order.
    /// - Returns: nil where the parts make no URL.
    package func url(of name: String?, query: [(name: String, value: String)] = []) -> AbsoluteURL?
    {
        var text = server + (usesBucketHost ? "/" : "/\(bucket)")
        if let name {
            if !usesBucketHost { text += "/" }
            text += PercentCoding.encode(prefix + name, allowed: Self.path)
        }
        let pairs = query.map {
            (PercentCoding.queryComponent($0.name), PercentCoding.queryComponent($0.value))
        }.sorted { $0 < $1 }
        if !pairs.isEmpty { text += "?" + pairs.map { "\($0)=\($1)" }.joined(separator: "&") }
        return try? AbsoluteURL(text)
    }

    private static let path = PercentCoding.Allowed.unreserved.union(PercentCoding.Allowed("/"))
}

extension BucketLocation: CustomStringConvertible {
    /// For logs and reports.
    package var description: String { "s3://\(bucket)/\(prefix) at \(endpoint)" }
}
