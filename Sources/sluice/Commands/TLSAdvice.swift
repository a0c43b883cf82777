import Glibc
import LocalAuthority

/// The output of `sluice tls init`: the files made, how to start the daemon with them, how devices
/// trust them.
struct TLSAdvice {
    let files: AuthorityFolder
    let outcome: AuthorityFolder.Outcome

    var text: String {
        [made, start, trust].joined(separator: "\n\n")
    }

    private var made: String {
        let authority = outcome.isNewAuthority ? "new authority" : "kept authority"
        return """
            \(authority): \(files.authorityCertificate)
            \(TLSShowCommand.text(of: outcome.authority, now: now))

            new server certificate: \(files.serverCertificate)
            \(TLSShowCommand.text(of: outcome.server, now: now))
            """
    }

    private var now: Int64 { Int64(time(nil)) }

    private var start: String {
        """
        Start the daemon with it:
          sluice serve --tls-port 9443 --tls-cert \(Self.quoted(files.serverCertificate)) \
        --tls-key \(Self.quoted(files.serverKey))
        For other devices, add --bind 0.0.0.0, a --token, and --host-name for each host name and IP
        address by which they reach it.
        """
    }

    /// Steps for each platform; the same as in the page TLS.md.
    private var trust: String {
        let file = Self.quoted(files.authorityCertificate)
        let whom =
            outcome.isNewAuthority
            ? "Have each device"
            : """
            Devices that trust the authority already accept the new certificate as it is.
            Have others
            """
        return """
            \(whom) trust authority.pem, once; never copy authority.key to another machine:
              macOS              sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain \(file)
              iOS, iPadOS        send the file, open it, Settings > General > VPN & Device Management > install;
                                 then Settings > General > About > Certificate Trust Settings > switch it on
              tvOS               install the file as a profile with Apple Configurator; then
                                 Settings > General > About > Certificate Trust Settings > switch it on
              Android            Settings > Security > Encryption & credentials > Install a certificate > CA certificate
                                 (apps other than browsers trust it only where their makers allow it)
              Windows            certutil -addstore -f Root authority.pem        (as administrator)
              Debian, Ubuntu     sudo cp \(file) /usr/local/share/ca-certificates/sluice.crt && sudo update-ca-certificates
              Fedora             sudo cp \(file) /etc/pki/ca-trust/source/anchors/sluice.pem && sudo update-ca-trust
              Firefox            Settings > Privacy & Security > View Certificates > Authorities > Import
              Chromium on Linux  certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n sluice -i \(file)        (libnss3-tools)
              curl               curl --cacert \(file) URL
              ffmpeg             ffmpeg -tls_verify 1 -ca_file \(file) -i URL
              mpv                mpv --tls-verify=yes --tls-ca-file=\(file) URL
              VLC                uses what the system trusts
            """
    }

    /// Quotes a path for a shell.
    private static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case 0x61...0x7A, 0x41...0x5A, 0x30...0x39: true
            default: "/._-+,:@".utf8.contains(byte)
            }
        }
        return isPlain
            ? path
            : "'"
                + path.split(separator: "'", omittingEmptySubsequences: false)
                .joined(separator: "'\\''") + "'"
    }
}
