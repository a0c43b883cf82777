// The folder that holds the authority and the server certificate it signed last.
import Glibc
package import Posix

/// The reason why a folder of certificates could not be filled; the text says what to do.
package enum AuthorityFolderError: Error, Equatable, CustomStringConvertible {
    case system(SystemError)
    case authority(AuthorityError, folder: String)
    /// Only one of `authority.pem` and `authority.key` exists.
    case half(missing: String, folder: String)
    case busy(folder: String)

    package var description: String {
        switch self {
        case .system(let error): "\(error)"
        case .authority(.libcrypto(let error), _): "\(error)"
        case .authority(let error, let folder):
            """
            the authority in \(folder) cannot be used: \(error). Restore its files, or remove \
            authority.pem and authority.key to have a new one made, which every device must trust anew.
            """
        case .half(let missing, let folder):
            """
            the authority in \(folder) is not complete: \(missing) is missing. Restore it, or remove \
            authority.pem and authority.key to have a new one made, which every device must trust anew.
            """
        case .busy(let folder): "another `sluice tls init` is at work in \(folder)"
        }
    }
}

/// The files `authority.pem`, `authority.key`, `server.pem` and `server.key` of a folder.
package struct AuthorityFolder {
    package let path: String

    /// The result of `renew`.
    package struct Outcome {
        package let authority: Certificate
        package let server: Certificate
        package let isNewAuthority: Bool
    }

    package init(path: String) { self.path = path }

    /// `$XDG_CONFIG_HOME/sluice`, else `~/.config/sluice`, else `/etc/sluice`.
    package static func defaultPath(_ variable: (String) -> String?) -> String {
        if let folder = variable("XDG_CONFIG_HOME"), folder.hasPrefix("/") {
            return folder + "/sluice"
        }
        if let home = variable("HOME"), home.hasPrefix("/") { return home + "/.config/sluice" }
        return "/etc/sluice"
    }

    package var authorityCertificate: String { path + "/authority.pem" }
    package var authorityKey: String { path + "/authority.key" }
    /// The server's certificate, followed by the authority's.
    package var serverCertificate: String { path + "/server.pem" }
    package var serverKey: String { path + "/server.key" }

    /// Creates a new server certificate, and first the authority if there is none.
    ///
    /// An existing authority is never overwritten. Blocks on the disk.
    package func renew(
        for names: ServerNames, authorityName: String, now: Int64
    ) throws(AuthorityFolderError) -> Outcome {
        try onDisk { () throws(SystemError) in try makeFolder(path) }
        let lock = try self.lock()
        defer { withExtendedLifetime(lock) {} }
        let (authority, isNew) = try self.authority(named: authorityName, now: now)
        let server = try signed { () throws(AuthorityError) in
            try authority.issue(for: names, now: now)
        }
        let chain = try Self.pem(server.certificate) + Self.pem(authority.certificate)
        let key = try Self.pem(server.key)
        try onDisk { () throws(SystemError) in
            // A service that runs as another user goes on reading them.
            try replaceFile(serverKey, with: key, in: path, mode: 0o600, keepsAccess: true)
            try replaceFile(
                serverCertificate, with: chain, in: path, mode: 0o644, keepsAccess: true)
        }
        return Outcome(
            authority: authority.certificate, server: server.certificate, isNewAuthority: isNew)
    }

    /// Reads the authority from the folder, or creates one if there is none.
    private func authority(
        named name: String, now: Int64
    ) throws(AuthorityFolderError) -> (Authority, isNew: Bool) {
        let certificate = try content(authorityCertificate)
        let key = try content(authorityKey)
        switch (certificate, key) {
        case (let certificate?, let key?):
            let found = try signed { () throws(AuthorityError) in
                try Authority(certificatePEM: certificate, keyPEM: key, now: now)
            }
            return (found, false)
        case (nil, _?): throw .half(missing: authorityCertificate, folder: path)
        case (_?, nil): throw .half(missing: authorityKey, folder: path)
        case (nil, nil):
            let new = try signed { () throws(AuthorityError) in
                try Authority.make(name: name, now: now)
            }
            let key = try Self.pem(new.identity.key)
            let certificate = try Self.pem(new.certificate)
            try onDisk { () throws(SystemError) in
                try replaceFile(authorityKey, with: key, in: path, mode: 0o600)
                try replaceFile(authorityCertificate, with: certificate, in: path, mode: 0o644)
            }
            return (new, true)
        }
    }

    /// Returns a file's bytes; nil if it does not exist.
    private func content(_ file: String) throws(AuthorityFolderError) -> [UInt8]? {
        do throws(SystemError) {
            return try readWhole(file, atMost: 1 << 20)
        } catch {
            if error.code == ENOENT { return nil }
            throw .system(error)
        }
    }

    /// Locks the folder against other runs until the descriptor is closed (flock(2)).
    private func lock() throws(AuthorityFolderError) -> SharedDescriptor {
        do throws(SystemError) {
            let folder = SharedDescriptor(try openFile(path, flags: O_RDONLY | O_DIRECTORY))
            _ = try check("flock", path) { flock(folder.number, LOCK_EX | LOCK_NB) }
            return folder
        } catch {
            if error.code == EWOULDBLOCK { throw .busy(folder: path) }
            throw .system(error)
        }
    }

    private func onDisk(
        _ body: () throws(SystemError) -> Void
    ) throws(AuthorityFolderError) {
        do throws(SystemError) {
            try body()
        } catch {
            throw .system(error)
        }
    }

    private func signed<Made>(
        _ body: () throws(AuthorityError) -> Made
    ) throws(AuthorityFolderError) -> Made {
        do throws(AuthorityError) {
            return try body()
        } catch {
            throw .authority(error, folder: path)
        }
    }

    private static func pem(_ certificate: Certificate) throws(AuthorityFolderError) -> [UInt8] {
        do throws(LibcryptoError) {
            return try certificate.pem()
        } catch {
            throw .authority(.libcrypto(error), folder: "")
        }
    }

    private static func pem(_ key: PrivateKey) throws(AuthorityFolderError) -> [UInt8] {
        do throws(LibcryptoError) {
            return try key.pem()
        } catch {
            throw .authority(.libcrypto(error), folder: "")
        }
    }
}
