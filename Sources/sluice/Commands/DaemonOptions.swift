import ArgumentParser
import CommandSupport
import DaemonService
import FoundationEssentials
import Glibc
import LocalAuthority
import URISyntax

/// The options for reaching the daemon.
struct DaemonOptions: ParsableArguments {
    @Option(
        help:
            "The daemon's base URL; default $SLUICE_DAEMON, else by settings in the environment such as $SLUICE_PORT, else http://127.0.0.1:9000."
    )
    var daemon: String?

    @OptionGroup var access: DaemonAccess

    func validate() throws {
        // Without them, another daemon would be asked.
        if daemon == nil, Self.environmentDaemon == nil { _ = try Self.configured.get() }
        try Self.check(base: base, from: daemon == nil ? "SLUICE_DAEMON" : "--daemon")
    }

    /// Checks that the paths of requests can be appended to the base URL of a daemon.
    ///
    /// - Parameters:
    ///   - base: the URL, with its scheme.
    ///   - source: the flag or the variable that it is from.
    /// - Throws: `ValidationError`.
    static func check(base: String, from source: String) throws {
        // What follows may be a token.
        let shown = base.prefix { $0 != "?" && $0 != "#" }
        guard shown.count == base.count else {
            throw ValidationError(
                "\(source) is the daemon's base URL, without a query or a fragment: give '\(shown)', and a token with --token or SLUICE_TOKEN"
            )
        }
        guard (try? AbsoluteURL(base)) != nil else {
            throw ValidationError("\(source) is a URL such as \(standard), not '\(base)'")
        }
    }

    /// Without a slash at its end; a text without a scheme gets `http`.
    var base: String {
        let given =
            daemon ?? Self.environmentDaemon ?? (try? Self.configured.get()) ?? Self.standard
        let base = Self.withScheme(given)
        return base.hasSuffix("/") ? String(base.dropLast()) : base
    }

    /// Returns a base URL with the scheme that it may lack.
    static func withScheme(_ given: String) -> String {
        given.contains("://") ? given : "http://" + given
    }

    func client() -> AdminClient { access.client(at: base) }

    /// Where `sluice serve` listens by default.
    static let standard = "http://127.0.0.1:9000"

    /// The address of the daemon whose settings are in the environment, as in a container; nil if
    /// they do not say where it listens, and a failure, which is printed, if they cannot be read.
    private static let configured: Result<String?, any Error> = Result {
        try DaemonOptions.namesListener ? readLocalBases(file: nil).first : nil
    }

    /// True if the environment has settings of the address on which a daemon listens.
    static var namesListener: Bool {
        ["SLUICE_CONFIG", "SLUICE_BIND", "SLUICE_PORT", "SLUICE_TLS_PORT"].contains {
            variable($0) != nil
        }
    }

    static var environmentDaemon: String? { variable("SLUICE_DAEMON") }
    static var environmentToken: String? { variable("SLUICE_TOKEN") }

    fileprivate static func variable(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// The token that a command shows to a daemon, and the authority that it trusts to sign the
/// certificate of one behind https.
struct DaemonAccess: ParsableArguments {
    @Option(help: "Access token of the daemon, if it needs one; default $SLUICE_TOKEN.")
    var token: String?

    @Option(
        help: ArgumentHelp(
            "PEM file of the authority that signed the daemon's certificate; default $SLUICE_DAEMON_CA, else the authority of `sluice tls init`, else the system's.",
            valueName: "file"),
        completion: .file())
    var daemonCa: String?

    /// The token that the flag or the environment gives; nil for none.
    var givenToken: String? { token ?? DaemonOptions.environmentToken }

    func client(at base: String) -> AdminClient {
        AdminClient(base: base, token: givenToken, authority: Self.authority(daemonCa))
    }

    /// The file that the flag or the environment names, or the authority of this user; nil for none.
    static func authority(_ named: String?) -> String? {
        if let named = named ?? DaemonOptions.variable("SLUICE_DAEMON_CA") { return named }
        let made = AuthorityFolder(path: AuthorityFolder.defaultPath { DaemonOptions.variable($0) })
        return access(made.authorityCertificate, R_OK) == 0 ? made.authorityCertificate : nil
    }
}
