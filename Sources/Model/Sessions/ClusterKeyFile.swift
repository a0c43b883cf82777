// The file of the keys that all nodes of a cluster share.
import Glibc
import Numbers
import Posix
import Store

/// A secret that the nodes of a cluster share.
package struct ClusterKey: Hashable, Sendable {
    /// The bytes of a secret.
    package static let length = 32
    package let secret: [UInt8]

    /// - Parameter secret: `length` bytes.
    package init(secret: [UInt8]) {
        self.secret = secret
    }

    /// The number by which links name the key; tells nothing of the secret.
    package var id: UInt32 {
        let digest = Signer(key: secret).sign(Array("sluice cluster key id".utf8))
        return digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The number as eight hexadecimal digits, as commands and messages show it.
    package var name: String { Self.name(of: id) }

    static func name(of id: UInt32) -> String { String(UInt64(id), radix: 16, width: 8) }

    /// The line of the file.
    package var line: String { secret.map { String(UInt64($0), radix: 16, width: 2) }.joined() }
}

/// A file with one hexadecimal key on each line: the first one seals, and any of them opens.
///
/// Empty lines and lines that start with `#` are skipped.
package struct ClusterKeyFile: Sendable {
    /// What is wrong with a file, and what to do.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    /// The most keys: the one that seals, and those being introduced or retired.
    package static let mostKeys = 4
    private static let mostBytes = 4_096

    /// The first one seals; not empty.
    package var keys: [ClusterKey]

    package init(keys: [ClusterKey]) {
        self.keys = keys
    }

    /// Reads a file; blocks on the disk.
    ///
    /// - Throws: `Fault` if it cannot be read, is not secret enough, or holds anything but 1 to
    ///   `mostKeys` different keys.
    package init(path: String) throws(Fault) {
        let make = "'sluice cluster key \(path)' makes a file"
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try readWhole(path, atMost: Self.mostBytes)
        } catch {
            switch error.code {
            case ENOENT:
                throw Fault(description: "the cluster key \(path) does not exist; \(make)")
            case EFBIG, EINVAL, EISDIR:
                throw Fault(
                    description: "the cluster key \(path) is not a readable file of keys; \(make)")
            case EACCES:
                throw Fault(
                    description: "the cluster key cannot be read: \(error); \(Self.remedy)")
            default: throw Fault(description: "the cluster key cannot be read: \(error)")
            }
        }
        var found = stat()
        guard stat(path, &found) == 0 else {
            throw Fault(description: "the cluster key \(path) cannot be read")
        }
        guard Self.isSecret(found, group: getegid()) else {
            throw Fault(
                description:
                    "other users may access the cluster key \(path); \(Self.remedy)")
        }
        try self.init(text: String(decoding: bytes, as: UTF8.self), path: path)
    }

    private static let remedy =
        "chown it to the user of the daemon and run chmod 600 on it, "
        + "or chown it to root and that user's group and run chmod 640 on it"

    /// Whether a file shows its keys to nobody but the daemon's user and root.
    ///
    /// - Parameters:
    ///   - found: the file.
    ///   - group: the group of this process, for which root may have a file.
    /// - Returns: true if only its owner may access it, or a group of root's may read it.
    static func isSecret(_ found: stat, group: gid_t) -> Bool {
        // A service manager may let a service read by an access list, which shows as root's group.
        let mayRead = found.st_gid == 0 || found.st_uid == 0 && found.st_gid == group
        return found.st_mode & (mayRead ? 0o037 : 0o077) == 0
    }

    /// Parses the text of a file, which faults name by its path.
    package init(text: String, path: String) throws(Fault) {
        keys = []
        let lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
        for (index, bytes) in lines.enumerated() {
            let line = bytes.filter { $0 != 0x0D && $0 != 0x20 && $0 != 0x09 }
            if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
            let place = "line \(index + 1) of the cluster key \(path)"
            guard let key = Self.key(line) else {
                throw Fault(
                    description: "\(place) is not a key of \(ClusterKey.length * 2) hexadecimal "
                        + "digits; 'sluice cluster key' makes one")
            }
            guard !keys.contains(where: { $0.id == key.id }) else {
                throw Fault(description: "\(place) repeats an earlier key; remove one of them")
            }
            guard keys.count < Self.mostKeys else {
                throw Fault(
                    description: "the cluster key \(path) holds more than \(Self.mostKeys) keys; "
                        + "remove the oldest, the last ones")
            }
            keys.append(key)
        }
        guard !keys.isEmpty else {
            throw Fault(
                description: "the cluster key \(path) holds no key; "
                    + "remove it and run 'sluice cluster key \(path)'")
        }
    }

    private static func key(_ digits: [UInt8]) -> ClusterKey? {
        guard digits.count == ClusterKey.length * 2 else { return nil }
        var secret: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[start..<(start + 2)], as: UTF8.self)
            guard let byte = ExternalNumber.integer(pair, in: 0...255, radix: 16) else {
                return nil
            }
            secret.append(UInt8(byte))
        }
        // A line that repeats one digit is the placeholder of a template.
        return Set(digits).count > 1 ? ClusterKey(secret: secret) : nil
    }

    /// The text of the file.
    package var text: String {
        let head = """
            # Keys that the nodes of a sluice cluster share (--cluster-key): one file, the same on all.
            # The first key seals, each opens. Whoever has them reads the headers in links: mode 0600.

            """
        return head + keys.map { $0.line + "\n" }.joined()
    }
}
