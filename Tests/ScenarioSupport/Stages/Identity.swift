/// A certificate by its own authority, as `sluice tls init` makes them.
package struct Identity: Sendable {
    package let folder: TemporaryFolder

    package init(_ names: String...) throws {
        folder = try TemporaryFolder()
        let made = try Tool.run(
            [DaemonProcess.builtBinary(), "tls", "init", "--folder", folder.path] + names)
        guard made.status == 0 else { throw ScenarioFailure("tls init: \(made.stderr)") }
    }

    package var authority: String { folder.file("authority.pem") }
    package var certificate: String { folder.file("server.pem") }
    package var key: String { folder.file("server.key") }

    /// Options of `serve` for it.
    package var options: [String] { ["--tls-cert", certificate, "--tls-key", key] }

    /// Replaces certificate and key by those of another.
    package func replace(by other: Identity) throws {
        try writeFile(certificate, try readFile(other.certificate))
        try writeFile(key, try readFile(other.key))
    }
}
