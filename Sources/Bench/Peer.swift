// The proxies that a comparison sets the daemon beside, and how each is started.
import Glibc

/// One kind of proxy.
struct Peer {
    /// What a proxy can do at all; it is left out where it cannot.
    enum Ability: Sendable {
        /// Keeps what it stored over a restart.
        case disk
        /// Answers ranges from what it stored.
        case ranges
        /// Fetches over TLS.
        case secure
    }

    let name: String
    /// The program, looked for in PATH and where administrators' programs are.
    let program: String
    /// Its configuration below Fixtures/bench, and where that goes in its folder.
    var files: [(template: String, place: String)] = []
    /// Words of the configuration beside the common ones.
    var words: [String: String] = [:]
    /// Its arguments; the same words are filled in.
    var arguments: [String] = []
    /// Makes it tell its version.
    var version = "--version"
    /// Ends it; most proxies take SIGTERM for that.
    var signal = SIGTERM
    var abilities: Set<Ability> = [.disk, .ranges]

    /// All of them, in the order of the table.
    static let all: [Peer] = [
        nginx("nginx", extra: "", abilities: [.disk, .ranges, .secure]),
        nginx(
            "nginx-slice",
            extra: "slice 1m; proxy_cache_key $uri$is_args$args$slice_range; "
                + "proxy_set_header Range $slice_range;",
            abilities: [.disk, .ranges]),
        Peer(
            name: "varnish", program: "varnishd", files: [("varnish.vcl", "all.vcl")],
            arguments: [
                "-F", "-j", "none", "-a", "127.0.0.1:@port@", "-f", "@folder@/all.vcl", "-n",
                "@folder@/state", "-s", "malloc,4G",
            ], version: "-V", abilities: [.ranges]),
        Peer(
            name: "trafficserver", program: "traffic_server",
            files: ["records.config", "remap.config", "storage.config"].map {
                ("trafficserver/\($0)", "etc/\($0)")
            }, arguments: ["--run-root=@folder@"], abilities: [.disk, .ranges, .secure]),
        Peer(
            name: "squid", program: "squid", files: [("squid.conf", "squid.conf")],
            arguments: ["-N", "-f", "@folder@/squid.conf"]),
        Peer(
            name: "haproxy", program: "haproxy", files: [("haproxy.cfg", "all.cfg")],
            arguments: ["-db", "-f", "@folder@/all.cfg"], version: "-v", abilities: [.secure]),
    ]

    private static func nginx(_ name: String, extra: String, abilities: Set<Ability>) -> Peer {
        Peer(
            name: name, program: "nginx", files: [("nginx.conf", "nginx.conf")],
            words: ["extra": extra],
            arguments: ["-c", "@folder@/nginx.conf", "-p", "@folder@"], version: "-v",
            signal: SIGQUIT, abilities: abilities)
    }

    /// Where the program is; nil where it is not installed.
    var path: String? { findProgram(program) }
}

/// Looks for a program in PATH and where administrators' programs are.
func findProgram(_ name: String) -> String? {
    let folders = getenv("PATH").map { String(cString: $0).split(separator: ":") } ?? []
    return (folders.map(String.init) + ["/usr/sbin", "/usr/local/sbin"])
        .map { "\($0)/\(name)" }
        .first { access($0, X_OK) == 0 }
}

/// Where a proxy fetches from.
struct BenchOrigin {
    let host: String
    let port: UInt16
    var isSecure = false
    /// The certificate that vouches for it, in PEM.
    var certificate: String?
    /// Whether it speaks HTTP/2.
    var speaksHTTP2 = false

    var address: String { "\(host):\(port)" }
    var scheme: String { isSecure ? "https" : "http" }

    /// Words of peers' configurations.
    var words: [String: String] {
        [
            "origin": address, "originhost": host, "originport": "\(port)", "scheme": scheme,
            "tls": isSecure
                ? "ssl verify none\(speaksHTTP2 ? " alpn h2,http/1.1" : "")" : "",
            "cpus": "\(max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN))))",
        ]
    }
}
