import ArgumentParser
import CommandSupport
import Glibc
import LocalAuthority
import Posix

/// `sluice tls`: certificates for the daemon's TLS listener.
struct TLSCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tls",
        abstract: "Create and show certificates for TLS on a local network.",
        subcommands: [TLSInitCommand.self, TLSShowCommand.self])
}

/// `sluice tls init`: makes an authority, once, and a server certificate signed by it, at every
/// run.
struct TLSInitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create a certificate authority and a server certificate signed by it.",
        discussion: """
            Writes authority.pem, authority.key, server.pem and server.key. An authority that the folder \
            holds already is kept and only signs a new server certificate: run this again to renew it, or to \
            change its names. A server certificate is valid for 396 days from now, the authority for ten years. \
            Devices trust authority.pem; authority.key signs for any name, so keep it to yourself.
            """)

    @Argument(
        help: ArgumentHelp(
            """
            Host names, wildcards such as *.home.arpa and IP addresses that clients connect to. Default: \
            the host name, hostname.local, localhost and the addresses of this machine.
            """, valueName: "name"))
    var names: [String] = []

    @Option(
        help: ArgumentHelp(
            "Folder of the files; default $XDG_CONFIG_HOME/sluice, else ~/.config/sluice.",
            valueName: "path"),
        completion: .directory)
    var folder: String?

    func validate() throws {
        if let folder, folder.isEmpty { throw ValidationError("--folder is empty") }
        guard !names.isEmpty else { return }
        do throws(ServerNames.Fault) {
            _ = try ServerNames(names)
        } catch {
            throw ValidationError("\(error)")
        }
    }

    func run() throws {
        let path =
            folder
            ?? AuthorityFolder.defaultPath { name in
                getenv(name).map { String(cString: $0) }
            }
        let files = AuthorityFolder(path: try Self.absolute(path))
        do throws(AuthorityFolderError) {
            let outcome = try files.renew(
                for: wantedNames, authorityName: "Sluice authority of \(machineName())",
                now: Int64(time(nil)))
            print(TLSAdvice(files: files, outcome: outcome).text)
        } catch {
            throw commandFailure("\(error)")
        }
    }

    /// The names given, or those of the machine.
    private var wantedNames: ServerNames {
        // If its addresses cannot be read, the machine still has its names.
        let own = {
            ServerNames(hostName: machineName(), addresses: (try? interfaceAddresses()) ?? [])
        }
        return names.isEmpty ? own() : (try? ServerNames(names)) ?? own()
    }

    /// Returns an absolute path, valid wherever the daemon is started.
    private static func absolute(_ path: String) throws -> String {
        if path.hasPrefix("/") { return path }
        guard let here = getcwd(nil, 0) else {
            throw commandFailure("\(SystemError("getcwd", code: errno))")
        }
        defer { free(here) }
        return String(cString: here) + "/" + path
    }
}

/// `sluice tls show`: the contents of the certificates in a file.
struct TLSShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Print names, issuer, validity and fingerprint of the certificates of a PEM file."
    )

    @Argument(
        help: "PEM file with certificates, such as server.pem.",
        completion: .file())
    var file: String

    func run() throws {
        let certificates: [Certificate]
        do {
            certificates = try Certificate.all(inPEM: readWhole(file, atMost: 1 << 20))
        } catch {
            throw commandFailure("\(error)")
        }
        guard !certificates.isEmpty else {
            throw commandFailure("no PEM certificate in \(file)")
        }
        let now = Int64(time(nil))
        print(certificates.map { Self.text(of: $0, now: now) }.joined(separator: "\n\n"))
    }

    /// Returns one certificate as text.
    static func text(of certificate: Certificate, now: Int64) -> String {
        var table = TextTable()
        table.add("subject", certificate.subject)
        if certificate.isAuthority { table.add("kind", "authority") }
        let names = certificate.names
        if !names.isEmpty { table.add("names", names.joined(separator: ", ")) }
        table.add("issuer", certificate.issuer)
        table.add("valid from", utc(certificate.notBefore))
        table.add("valid through", utc(certificate.notAfter) + remark(certificate, now: now))
        table.add("SHA-256", certificate.fingerprint)
        return table.text
    }

    private static func remark(_ certificate: Certificate, now: Int64) -> String {
        if let start = certificate.notBefore, start > now { return " (not valid yet)" }
        guard let end = certificate.notAfter else { return "" }
        if end < now { return " (expired)" }
        let days = (end - now) / 86_400
        return days == 1 ? " (1 day left)" : " (\(days) days left)"
    }

    private static func utc(_ seconds: Int64?) -> String {
        guard let seconds else { return "unreadable" }
        var moment = time_t(seconds)
        var parts = tm()
        guard gmtime_r(&moment, &parts) != nil else { return "unreadable" }
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, "%Y-%m-%d %H:%M:%S UTC", &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
