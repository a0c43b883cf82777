package import FixtureCDN
import Glibc
import Synchronization

/// A real nginx in front of the sample CDN or of a folder, for TLS and HTTP/2 by foreign code.
package final class NginxFront: Sendable {
    /// What nginx serves.
    package enum Source: Sendable {
        /// Forwards requests unbuffered, so that faults and delays of the CDN are visible.
        case proxy(FixtureCDN)
        /// Forwards requests to another origin, such as `http://127.0.0.1:8080`.
        case address(String)
        /// Serves the files of a folder itself.
        case folder(String)
    }

    private let folder: TemporaryFolder
    private let child: ChildProcess
    /// The address it listens on; the certificate also names `localhost`.
    package let address: String
    package let port: UInt16

    /// Whether nginx and openssl are on this machine; tests that need them are skipped otherwise.
    package static var isAvailable: Bool { program != nil && Tool.exists("openssl") }

    /// Makes a CA and a certificate and starts nginx on a free port, with HTTP/2 by default.
    ///
    /// It resumes TLS sessions by tickets only; `protocols` are its `ssl_protocols`, nil for its
    /// defaults. With `asksForCertificate` it rejects clients without a certificate of its CA, such
    /// as `certificate`. It ends connections without a request after `idleSeconds`, or its default.
    /// Its certificate is valid for `days`, and expired if these are negative.
    /// Returns when it accepts connections; throws with its output if it does not.
    package init(
        _ source: Source, address: String = "127.0.0.1", http2: Bool = true,
        protocols: String? = nil, asksForCertificate: Bool = false, days: Int = 3_650,
        idleSeconds: Int? = nil
    ) throws {
        guard let program = Self.program else { throw ScenarioFailure("no nginx on this machine") }
        let folder = try TemporaryFolder()
        try Self.makeCertificates(in: folder, address: address, days: days)
        for name in ["body", "proxy", "fastcgi", "uwsgi", "scgi"] { _ = folder.makeFolder(name) }
        var words = ""
        // Another process may take the free port before nginx binds it.
        for _ in 0..<5 {
            let port = try freePort(address)
            let settings = Settings(
                folder: folder, address: address, port: port, http2: http2, protocols: protocols,
                asksForCertificate: asksForCertificate, idleSeconds: idleSeconds)
            try writeFile(folder.file("nginx.conf"), settings.text(source).utf8)
            let child = try ChildProcess(
                [program, "-p", folder.path, "-c", folder.file("nginx.conf"), "-e", "stderr"])
            if eventually({ child.exit != nil || Self.accepts(address, port) }), child.exit == nil {
                self.folder = folder
                self.child = child
                self.address = address
                self.port = port
                return
            }
            child.end()
            words = String(decoding: child.standardError, as: UTF8.self)
        }
        throw ScenarioFailure("nginx does not start:\n\(words)")
    }

    deinit { child.kill(SIGKILL) }

    /// `https://127.0.0.1:8443`, without a slash at the end.
    package var baseURL: String { "https://\(address):\(port)" }
    package func url(_ path: String) -> String { baseURL + path }

    /// The certificate a client must trust, in PEM.
    package var caFile: String { folder.file("ca.pem") }

    /// A certificate of its CA and the key, in PEM.
    package var certificate: String { folder.file("server.pem") }
    package var key: String { folder.file("server.key") }

    /// One line per request: protocol, status, method, target, number of its connection.
    package var accessLog: [String] {
        let bytes = (try? readFile(folder.file("access.log"))) ?? []
        return bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The connections that carried a request, by whether TLS resumed a session.
    package var handshakes: (full: Int, resumed: Int) {
        let bytes = (try? readFile(folder.file("handshakes.log"))) ?? []
        let lines = Set(bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) })
        let resumed = lines.count { $0.hasSuffix(" r") }
        return (lines.count - resumed, resumed)
    }

    /// Ends nginx and waits for it.
    package func stop() { child.end() }

    private static var program: String? {
        ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].first {
            access($0, X_OK) == 0
        }
    }

    private static func accepts(_ address: String, _ port: UInt16) -> Bool {
        let name = HostPort(host: address, port: port)
        return (try? WireSocket.connect(name, transcript: nil, limit: .seconds(1))) != nil
    }

    private static func makeCertificates(in folder: TemporaryFolder, address: String, days: Int)
        throws
    {
        let names =
            "subjectAltName=DNS:localhost,DNS:cdn.test,IP:127.0.0.1,IP:127.0.0.2,IP:\(address)"
        try writeFile(folder.file("names.cnf"), names.utf8)
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        let commands = [
            ["req", "-x509", "-days", "3650", "-subj", "/CN=Sluice test CA"] + key
                + ["-keyout", folder.file("ca.key"), "-out", folder.file("ca.pem")],
            ["req", "-subj", "/CN=localhost"] + key
                + ["-keyout", folder.file("server.key"), "-out", folder.file("server.csr")],
            [
                "x509", "-req", "-days", "\(days)", "-in", folder.file("server.csr"),
                "-CA", folder.file("ca.pem"), "-CAkey", folder.file("ca.key"), "-set_serial", "2",
                "-extfile", folder.file("names.cnf"), "-out", folder.file("server.pem"),
            ],
        ]
        for command in commands {
            let result = try Tool.run(["openssl"] + command)
            guard result.status == 0 else { throw ScenarioFailure("openssl: \(result.stderr)") }
        }
    }

    /// The configuration file; one process, so that ending it by its id ends everything.
    private struct Settings {
        let folder: TemporaryFolder
        let address: String
        let port: UInt16
        let http2: Bool
        let protocols: String?
        let asksForCertificate: Bool
        let idleSeconds: Int?

        func text(_ source: Source) -> String {
            let place =
                switch source {
                case .folder(let root): "root \(root);"
                case .proxy(let cdn): passing(to: cdn.baseURL)
                case .address(let url): passing(to: url)
                }
            return text(place)
        }

        private func passing(to url: String) -> String {
            """
            proxy_pass \(url);
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_next_upstream off;
            """
        }

        private func text(_ place: String) -> String {
            """
            daemon off;
            master_process off;
            pid \(folder.file("nginx.pid"));
            events { worker_connections 1024; }
            http {
                log_format short '$server_protocol $status $request_method $request_uri $connection';
                access_log \(folder.file("access.log")) short;
                log_format handshakes '$connection $ssl_session_reused';
                access_log \(folder.file("handshakes.log")) handshakes;
                client_body_temp_path \(folder.file("body"));
                proxy_temp_path \(folder.file("proxy"));
                fastcgi_temp_path \(folder.file("fastcgi"));
                uwsgi_temp_path \(folder.file("uwsgi"));
                scgi_temp_path \(folder.file("scgi"));
                types {
                    application/vnd.apple.mpegurl m3u8;
                    video/mp2t ts;
                    video/iso.segment m4s;
                    video/mp4 mp4;
                    audio/aac aac;
                    text/vtt vtt;
                }
                default_type application/octet-stream;
                server {
                    listen \(address):\(port) ssl\(http2 ? " http2" : "");
                    ssl_certificate \(folder.file("server.pem"));
                    ssl_certificate_key \(folder.file("server.key"));
                    \(idleSeconds.map { "keepalive_timeout \($0)s;" } ?? "")
                    \(protocols.map { "ssl_protocols \($0);" } ?? "")
                    \(asksForCertificate ? "ssl_client_certificate \(folder.file("ca.pem"));" : "")
                    \(asksForCertificate ? "ssl_verify_client on;" : "")
                    location / { \(place) }
                }
            }

            """
        }
    }
}
