// Removes secrets from text that came from elsewhere: log lines, settings, the answers of the daemon.
import HTTP
import URISyntax

/// Text without credentials, cookies and the values of queries.
package struct Redaction: Sendable {
    private static let mark = Array("***".utf8)
    /// The shortest text that is replaced wherever it stands: shorter ones occur by chance.
    private static let shortestSecret = 4

    /// The longest first, so that none is replaced in part.
    private let secrets: [[UInt8]]

    /// - Parameter secrets: texts that are replaced wherever they stand.
    package init(secrets: [String] = []) {
        let usable = Set(secrets).filter { $0.utf8.count >= Self.shortestSecret && $0 != "***" }
        self.secrets = usable.map { Array($0.utf8) }.sorted { $0.count > $1.count }
    }

    /// The texts to replace that a setting with URLs of any scheme holds: users, passwords, values of
    /// queries.
    package static func secrets(in setting: String) -> [String] {
        var found: [String] = []
        var rest = Array(setting.utf8)[...]
        while let colon = rest.indices.first(where: { rest[$0...].starts(with: Array("://".utf8)) })
        {
            let url = rest[(colon + 3)...].prefix { !isEnd($0) }
            // A URL with the same parts, of a scheme that is read.
            if let read = try? AbsoluteURL(bytes: Array("http://".utf8) + url) {
                found += read.secrets
            }
            rest = rest[url.endIndex...]
        }
        return found
    }

    /// The text line by line; work grows with its length.
    package func text(_ text: String) -> String {
        var output: [UInt8] = []
        for (index, line) in text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
            .enumerated()
        {
            if index > 0 { output.append(0x0A) }
            output += self.line(Array(line))
        }
        return String(decoding: output, as: UTF8.self)
    }

    private func line(_ line: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var index = 0
        while index < line.count {
            if let secret = secrets.first(where: { line[index...].starts(with: $0) }) {
                output += Self.mark
                index += secret.count
            } else if let end = Self.userinfoEnd(line, index) {
                output += Array("://***".utf8)
                index = end
            } else if line[index] == UInt8(ascii: "?") {
                index = Self.appendQuery(line, index, to: &output)
            } else if Self.isWordStart(line, index), let value = Self.secretValue(line, index) {
                output += line[index..<value.lowerBound] + Self.mark
                index = value.upperBound
            } else {
                output.append(line[index])
                index += 1
            }
        }
        return output
    }

    // MARK: Places of secrets

    /// Where the `@` stands behind a `://` at `index`; nil where no user information is there.
    private static func userinfoEnd(_ line: [UInt8], _ index: Int) -> Int? {
        guard line[index] == 0x3A, line[index...].starts(with: [0x3A, 0x2F, 0x2F]) else {
            return nil
        }
        let rest = line[(index + 3)...]
        let authority = rest.prefix { !isEnd($0) && $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        return authority.lastIndex(of: UInt8(ascii: "@"))
    }

    /// Copies the query at `index`, which is a `?`, without its values.
    ///
    /// - Returns: where it ends.
    private static func appendQuery(
        _ line: [UInt8], _ index: Int, to output: inout [UInt8]
    ) -> Int {
        output.append(line[index])
        let query = line[(index + 1)...].prefix { !isEnd($0) }
        for (place, item) in query.split(separator: 0x26, omittingEmptySubsequences: false)
            .enumerated()
        {
            if place > 0 { output.append(0x26) }
            if let equals = item.firstIndex(of: 0x3D) {
                output += item[...equals] + mark
            } else if !item.isEmpty {
                output += mark
            }
        }
        return query.endIndex
    }

    /// What ends a URL in a line: blanks, control characters, quotes and brackets of JSON and markup.
    private static func isEnd(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || "\"'<>\\`".utf8.contains(byte)
    }

    private static func isWordStart(_ line: [UInt8], _ index: Int) -> Bool {
        index == 0 || !isNameByte(line[index - 1])
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isToken(byte) && byte != 0x27 && byte != 0x60
    }

    /// The value behind a name at `index` that commonly holds a secret; nil where there is none.
    private static func secretValue(_ line: [UInt8], _ index: Int) -> Range<Int>? {
        let name = line[index...].prefix(40).prefix(while: isNameByte)
        let lower = ASCII.lowercased(String(decoding: name, as: UTF8.self))
        guard !name.isEmpty else { return nil }
        if schemes.contains(lower) {
            guard name.endIndex < line.count, line[name.endIndex] == 0x20 else { return nil }
            let value = line[(name.endIndex + 1)...].prefix { !isEnd($0) && $0 != 0x2C }
            // `Basic` and `Bearer` are words too: credentials are longer than one.
            return value.count > 5 ? value.startIndex..<value.endIndex : nil
        }
        let isField = fields.contains(lower)
        guard isField || names.contains(lower) else { return nil }
        var start = name.endIndex
        if start < line.count, line[start] == 0x22 {
            start += 1
            while start < line.count, line[start] == 0x20 { start += 1 }
        }
        guard start < line.count, line[start] == 0x3D || line[start] == 0x3A else { return nil }
        start += 1
        while start < line.count, line[start] == 0x20 || line[start] == 0x22 { start += 1 }
        // A field's value may have blanks: it ends with the line or with the quote around it.
        let value = line[start...].prefix {
            isField ? $0 != 0x22 && $0 != 0x5C : !isEnd($0) && $0 != 0x26 && $0 != 0x2C
        }
        return value.isEmpty ? nil : value.startIndex..<value.endIndex
    }

    private static let schemes: Set<String> = ["bearer", "basic", "digest"]

    private static let fields: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key",
        "x-auth-token", "x-access-token",
    ]

    private static let names: Set<String> = [
        "token", "access_token", "auth", "key", "api_key", "apikey", "secret", "password", "passwd",
        "pwd", "sig", "signature", "hdnts", "hdnea", "session", "sid", "policy-signature",
        "x-amz-signature", "x-amz-credential", "x-amz-security-token",
    ]
}
