// The files that `sluice tls` writes.
import Glibc
import LocalAuthority
import Posix
import Testing

/// A temporary folder.
private final class Scratch {
    let path = "/tmp/local-authority-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    var files: AuthorityFolder { AuthorityFolder(path: path + "/a/b") }

    func read(_ file: String) throws -> [UInt8] { try readWhole(file, atMost: 1 << 20) }

    func mode(_ file: String) -> mode_t {
        var found = stat()
        return stat(file, &found) == 0 ? found.st_mode & 0o777 : 0
    }

    deinit {
        for entry in (try? listFolder(files.path)) ?? [] { unlink(files.path + "/" + entry.name) }
        for part in ["/a/b", "/a", ""] { rmdir(path + part) }
    }
}

struct AuthorityFolderTests {
    static let now = AuthorityTests.now

    @discardableResult
    private func renew(_ scratch: Scratch, _ names: String...) throws -> AuthorityFolder.Outcome {
        try scratch.files.renew(
            for: ServerNames(names), authorityName: "test", now: Self.now)
    }

    @Test func `keys are readable by their owner only, whatever an interrupted run left`() throws {
        let scratch = Scratch(), files = scratch.files
        try makeFolder(files.path)
        for name in [files.serverKey, files.authorityKey] {
            let left = try openFile(name + ".new", flags: O_CREAT | O_WRONLY)
            #expect(fchmod(left.number, 0o666) == 0)
        }
        try renew(scratch, "nas")
        #expect(scratch.mode(files.authorityKey) == 0o600)
        #expect(scratch.mode(files.serverKey) == 0o600)
        #expect(scratch.mode(files.authorityCertificate) == 0o644)
        #expect(scratch.mode(files.serverCertificate) == 0o644)
        #expect(scratch.mode(files.path) == 0o700)
        #expect(
            try listFolder(files.path).map(\.name).sorted()
                == ["authority.key", "authority.pem", "server.key", "server.pem"])
    }

    @Test func `a renewal leaves the server's files readable for a service that may read them`()
        throws
    {
        let scratch = Scratch(), files = scratch.files
        try renew(scratch, "nas")
        chmod(files.serverKey, 0o640)
        if geteuid() == 0 { chown(files.serverKey, 0, 1_234) }
        try renew(scratch, "tv")
        #expect(scratch.mode(files.serverKey) == 0o640)
        var found = stat()
        #expect(stat(files.serverKey, &found) == 0)
        #expect(geteuid() != 0 || found.st_gid == 1_234)
    }

    @Test func `the server's file has its certificate followed by the authority's`() throws {
        let scratch = Scratch()
        let outcome = try renew(scratch, "nas", "10.1.2.3")
        let chain = try scratch.read(scratch.files.serverCertificate)
        let found = try Certificate.all(inPEM: chain)
        #expect(
            found.map(\.fingerprint) == [outcome.server.fingerprint, outcome.authority.fingerprint])
        let key = try #require(PrivateKey(pem: scratch.read(scratch.files.serverKey)))
        #expect(found[0].belongs(to: key))
        let root = try scratch.read(scratch.files.authorityCertificate)
        #expect(isAccepted(chain, for: "nas", by: root, at: Self.now))
        #expect(!isAccepted(chain, for: "other", by: root, at: Self.now))
    }

    @Test func `a second run keeps the authority and makes a new server certificate`() throws {
        let scratch = Scratch(), files = scratch.files
        let first = try renew(scratch, "nas")
        let authority = try [files.authorityCertificate, files.authorityKey].map(scratch.read)
        let key = try scratch.read(files.serverKey)
        let second = try renew(scratch, "tv", "nas")
        #expect(first.isNewAuthority && !second.isNewAuthority)
        #expect(
            try [files.authorityCertificate, files.authorityKey].map(scratch.read) == authority)
        #expect(try scratch.read(files.serverKey) != key)
        #expect(second.server.names == ["tv", "nas"])
        let chain = try scratch.read(files.serverCertificate)
        for name in ["tv", "nas"] {
            #expect(isAccepted(chain, for: name, by: authority[0], at: Self.now))
        }
    }

    @Test
    func `an incomplete or unusable authority is left unchanged, and so is the server's file`()
        throws
    {
        let scratch = Scratch(), files = scratch.files
        try renew(scratch, "nas")
        let kept = try [files.authorityCertificate, files.authorityKey].map(scratch.read)
        let server = try scratch.read(files.serverCertificate)
        for (index, name) in [files.authorityCertificate, files.authorityKey].enumerated() {
            try removeFile(name)
            #expect(throws: AuthorityFolderError.half(missing: name, folder: files.path)) {
                try renew(scratch, "tv")
            }
            #expect(throws: SystemError.self) { try scratch.read(name) }
            try replaceFile(name, with: Array("rubbish".utf8), in: files.path)
            #expect(throws: AuthorityFolderError.self) { try renew(scratch, "tv") }
            #expect(try scratch.read(name) == Array("rubbish".utf8))
            try replaceFile(name, with: kept[index], in: files.path)
        }
        #expect(try scratch.read(files.serverCertificate) == server)
        #expect(try !renew(scratch, "tv").isNewAuthority)
    }

    @Test func `a concurrent run is rejected`() throws {
        let scratch = Scratch(), files = scratch.files
        try makeFolder(files.path)
        let other = try openFile(files.path, flags: O_RDONLY | O_DIRECTORY)
        #expect(flock(other.number, LOCK_EX | LOCK_NB) == 0)
        #expect(throws: AuthorityFolderError.busy(folder: files.path)) { try renew(scratch, "nas") }
        #expect(flock(other.number, LOCK_UN) == 0)
        try renew(scratch, "nas")
    }

    @Test func `the default folder follows the environment`() {
        let path = { (variables: [String: String]) in AuthorityFolder.defaultPath { variables[$0] }
        }
        #expect(path(["XDG_CONFIG_HOME": "/c", "HOME": "/h"]) == "/c/sluice")
        #expect(path(["XDG_CONFIG_HOME": "relative", "HOME": "/h"]) == "/h/.config/sluice")
        #expect(path([:]) == "/etc/sluice")
    }
}
