// The credentials for the store, from the variables and files that other S3 programs read.

/// An access key with its secret.
///
/// Its description shows neither.
package struct AccessKeys: Sendable, Hashable {
    package let id: String
    package let secret: String
    /// The token of temporary credentials; nil for permanent ones.
    package let token: String?

    package init(id: String, secret: String, token: String? = nil) {
        self.id = id
        self.secret = secret
        self.token = token
    }

    /// What is missing; holds no secret.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    /// Finds credentials: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, otherwise a profile of the
    /// credentials file.
    ///
    /// - Parameters:
    ///   - variable: the value of an environment variable; nil if it is not set.
    ///   - read: the text of a file; nil if it cannot be read.
    /// - Returns: the credentials.
    /// - Throws: `Fault` where there are none, or they have characters that a field cannot have.
    package static func find(
        variable: (String) -> String?, read: (String) -> String?
    ) throws(Fault) -> AccessKeys {
        func value(_ name: String) -> String? {
            variable(name).flatMap { $0.isEmpty ? nil : $0 }
        }
        if let id = value("AWS_ACCESS_KEY_ID") {
            guard let secret = value("AWS_SECRET_ACCESS_KEY") else {
                throw Fault("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not")
            }
            return try AccessKeys(
                id: id, secret: secret, token: value("AWS_SESSION_TOKEN")
            ).checked()
        }
        let profile = value("AWS_PROFILE") ?? "default"
        let path =
            value("AWS_SHARED_CREDENTIALS_FILE")
            ?? value("HOME").map { $0 + "/.aws/credentials" }
        guard let path, let text = read(path) else {
            throw Fault(
                "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials or the file of AWS_SHARED_CREDENTIALS_FILE"
            )
        }
        guard let keys = parse(text, profile: profile) else {
            throw Fault(
                "the credentials file has no aws_access_key_id and aws_secret_access_key in profile [\(profile)]"
            )
        }
        return try keys.checked()
    }

    /// Rejects bytes that would end a header line.
    private func checked() throws(Fault) -> AccessKeys {
        let isText = [id, secret, token ?? ""].allSatisfy {
            $0.utf8.count <= 8_192 && $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        }
        guard isText else { throw Fault("the credentials have blanks or other such characters") }
        return self
    }

    /// Parses one profile of a credentials file; nil if it lacks the key or the secret.
    package static func parse(_ text: String, profile: String) -> AccessKeys? {
        var values: [String: String] = [:]
        var isInProfile = false
        for line in text.split(whereSeparator: \.isNewline) {
            let line = trimmed(line)
            guard let first = line.first, first != "#", first != ";" else { continue }
            if first == "[" {
                isInProfile = line.last == "]" && trimmed(line.dropFirst().dropLast()) == profile
            } else if isInProfile, let mark = line.firstIndex(of: "=") {
                let name = trimmed(line[..<mark]).lowercased()
                values[name] = String(trimmed(line[line.index(after: mark)...]))
            }
        }
        guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"],
            !id.isEmpty, !secret.isEmpty
        else { return nil }
        let token = values["aws_session_token"].flatMap { $0.isEmpty ? nil : $0 }
        return AccessKeys(id: id, secret: secret, token: token)
    }

    private static func trimmed(_ text: some StringProtocol) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        let end = start.reversed().drop { $0 == " " || $0 == "\t" }.count
        return Substring(start.prefix(end))
    }
}

extension AccessKeys: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "access keys (hidden)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
