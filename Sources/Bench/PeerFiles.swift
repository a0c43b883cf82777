import Glibc
import Posix

/// The configurations of peers: templates in Fixtures/bench with words between @ to replace.
enum PeerFiles {
    /// Writes a peer's configuration into its folder.
    static func write(_ peer: Peer, to folder: String, _ words: [String: String]) throws {
        for (template, place) in peer.files {
            let path = "\(folder)/\(place)"
            if let slash = path.lastIndex(of: "/") { try makeFolder(String(path[..<slash])) }
            try write(template: template, to: path, words)
        }
        if peer.name == "trafficserver" { try writeRunRoot(peer, folder) }
        if peer.name == "squid" { try makeSquidFolders(peer, folder) }
    }

    /// Writes one template with its words replaced.
    static func write(
        template: String, to path: String, _ words: [String: String]
    ) throws {
        let text = try readWhole("\(templates)/\(template)", atMost: 1 << 20)
        try writeText(fill(String(decoding: text, as: UTF8.self), words), to: path)
    }

    /// A text with its words replaced.
    static func fill(_ text: String, _ words: [String: String]) -> String {
        var filled = text
        for (word, value) in words {
            let parts = filled.split(separator: "@\(word)@", omittingEmptySubsequences: false)
            filled = parts.joined(separator: value)
        }
        return filled
    }

    private static var templates: String {
        let source = #filePath.split(separator: "/").dropLast(3)
        return "/" + source.joined(separator: "/") + "/Fixtures/bench"
    }

    /// Traffic Server finds all its folders by this file.
    private static func writeRunRoot(_ peer: Peer, _ folder: String) throws {
        let programs = (peer.path ?? "").split(separator: "/").dropLast().joined(separator: "/")
        let places = [
            "prefix: \(folder)", "exec_prefix: \(folder)", "bindir: /\(programs)",
            "sbindir: /\(programs)", "sysconfdir: \(folder)/etc", "datadir: \(folder)",
            "libexecdir: /usr/lib/trafficserver/modules", "localstatedir: \(folder)",
            "runtimedir: \(folder)", "logdir: \(folder)", "cachedir: \(folder)/cache",
        ]
        try makeFolder("\(folder)/cache")
        try writeText(places.joined(separator: "\n") + "\n", to: "\(folder)/runroot.yaml")
        let addresses = "ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n"
        try writeText(addresses + "    methods: ALL\n", to: "\(folder)/etc/ip_allow.yaml")
    }

    /// Creates Squid's folders, which takes a separate run of Squid.
    private static func makeSquidFolders(_ peer: Peer, _ folder: String) throws {
        guard let path = peer.path, access("\(folder)/cache/00", F_OK) != 0 else { return }
        try makeFolder("\(folder)/cache")
        chmod("\(folder)/cache", 0o777)
        let arguments = [path, "-z", "-N", "-f", "\(folder)/squid.conf"]
        try RunningProgram.runToEnd(arguments, in: folder)
    }
}
