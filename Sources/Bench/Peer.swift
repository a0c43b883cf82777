// The proxies that the daemon is compared with, and how each is started.
import Glibc

/// One kind of proxy.
struct Peer {
    /// An ability of a proxy; workloads that need it leave out proxies without it.
    enum Ability: Sendable {
        /// Keeps its stored objects across a restart.
        case disk
        /// Answers range requests from its store.
        case ranges
        /// Fetches over TLS.
        case secure
    }

    let name: String
    /// The program, looked up in PATH, /usr/sbin and /usr/local/sbin.
    let program: String
    /// Its configuration templates below Fixtures/bench, and their paths in its folder.
    var files: [(template: String, place: String)] = []
    /// Template words in addition to the common ones.
    var words: [String: String] = [:]
    /// Its arguments, with the same words replaced.
    var arguments: [String] = []
    /// The argument that prints its version.
    var version = "--version"
    /// The signal that stops it; SIGTERM for most proxies.
    var signal = SIGTERM
    var abilities: Set<Ability> = [.disk, .ranges]

    /// All peers, in the order of the table.
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

    /// The path of the program; nil if it is not installed.
    var path: String? { findProgram(program) }
}

/// Looks up a program in PATH, /usr/sbin and /usr/local/sbin.
func findProgram(_ name: String) -> String? {
    let folders = getenv("PATH").map { String(cString: $0).split(separator: ":") } ?? []
    return (folders.map(String.init) + ["/usr/sbin", "/usr/local/sbin"])
        .map { "\($0)/\(name)" }
        .first { access($0, X_OK) == 0 }
}

/// The origin of a proxy.
struct BenchOrigin {
    let host = "127.0.0.1"
    let port: UInt16
    var isSecure = false
    /// Its certificate, in PEM.
    var certificate: String?
    /// Whether it speaks HTTP/2.
    var speaksHTTP2 = false

    var address: String { "\(host):\(port)" }
    var scheme: String { isSecure ? "https" : "http" }

    /// The common template words of peers' configurations.
    var words: [String: String] {
        [
            "origin": address, "originhost": host, "originport": "\(port)", "scheme": scheme,
            "tls": isSecure
                ? "ssl verify none\(speaksHTTP2 ? " alpn h2,http/1.1" : "")" : "",
            "cpus": "\(max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN))))",
        ]
    }
}
