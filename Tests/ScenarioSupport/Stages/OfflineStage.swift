package import FixtureCDN
import Glibc

/// What stories of outages need: partly stored titles, and an origin that swallows connections.
extension Story {
    /// Puts a media playlist of segments of four seconds on the CDN, `/<name>.m3u8`.
    package func put(list name: String, count: Int = 6, head: [String] = [], type: String = "ts") {
        let uris = (0..<count).map { "/bytes/3000/\(name)\($0).\(type)" }
        cdn.put("/\(name).m3u8", text: vod(uris, head: head))
    }

    /// Plays segments of such a list, so that they and what the list needs are stored.
    package func keep(_ name: String, _ numbers: Range<Int>...) throws {
        let text = try get("/\(name).m3u8").text
        let media = uriLines(text)
        let others = try links(in: "/\(name).m3u8").filter { !media.contains($0) }
        for link in others + numbers.joined().map({ media[$0] }) {
            let answer = try follow(link)
            guard answer.status == 200 else { throw ScenarioFailure("\(link): \(answer.status)") }
        }
    }

    /// Puts a multivariant playlist, `/m.m3u8`, on the CDN and has it stored.
    package func keep(master lines: [String]) throws {
        cdn.put("/m.m3u8", text: (["#EXTM3U"] + lines).joined(separator: "\n") + "\n")
        guard try get("/m.m3u8").status == 200 else { throw ScenarioFailure("no master") }
    }

    /// A player of an offline daemon on the same cache; the daemon ends with `daemon`.
    package func offline() throws -> (player: OfflinePlayer, daemon: DaemonProcess) {
        let daemon = try succeed(["--policy", "offline"])
        return (OfflinePlayer(ScriptedPlayer(daemon.baseURL), cdn), daemon)
    }
}

/// The lines of a variant in a multivariant playlist.
package func variant(_ name: String, _ attributes: String = "") -> [String] {
    ["#EXT-X-STREAM-INF:BANDWIDTH=100000\(attributes)", "\(name).m3u8"]
}

/// A player that follows the links of lists.
package struct OfflinePlayer {
    package let player: ScriptedPlayer
    package let cdn: FixtureCDN

    package init(_ player: ScriptedPlayer, _ cdn: FixtureCDN) {
        self.player = player
        self.cdn = cdn
    }

    package func get(_ path: String) throws -> PlayerResponse {
        try player.get("/" + cdn.url(path))
    }

    /// The multivariant playlist, and the media playlists in it, by name.
    package func title() throws -> (master: PlayerResponse, lists: [String: PlayerResponse]) {
        let master = try get("/m.m3u8")
        var lists: [String: PlayerResponse] = [:]
        for link in links(master.text) { lists[fileName(link)] = try player.get(link) }
        return (master, lists)
    }
}

/// The file name of a link without its extension; the name at the origin, if the link contains it.
package func fileName(_ link: String) -> String {
    let name = originName(link) ?? link.split(separator: "/").last.map(String.init) ?? link
    return String(name.prefix { $0 != "." })
}

/// A list in short form: the names of its segments, `|` for a discontinuity, `.` for its end.
package func outline(_ list: PlayerResponse?) -> String {
    guard let list, list.status == 200 else { return "\(list?.status ?? 0)" }
    return list.text.split(separator: "\n").compactMap { line in
        switch line {
        case "#EXT-X-DISCONTINUITY": return "|"
        case "#EXT-X-ENDLIST": return "."
        default: return line.hasPrefix("#") ? nil : fileName(String(line))
        }
    }.joined(separator: " ")
}

/// A port that completes no connection: its queue is full, so that the system drops further
/// attempts (listen(2)).
package final class BlackHole: Sendable {
    private let listener: Int32
    private let clients: [Int32]

    /// Swallows connections to a port of 127.0.0.1 without a listener.
    package init(port: UInt16) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let made = { socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
        let listener = made()
        var yes: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let act = { (call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, socket: Int32) in
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(socket, $0, size) }
            }
        }
        guard act(bind, listener) == 0, listen(listener, 0) == 0 else {
            close(listener)
            throw ScenarioFailure("port \(port) cannot be taken: errno \(errno)")
        }
        self.listener = listener
        // One connection fills a queue of length zero; the others make sure.
        clients = (0..<4).map { _ in
            let client = made()
            _ = fcntl(client, F_SETFL, fcntl(client, F_GETFL) | O_NONBLOCK)
            _ = act(connect, client)
            return client
        }
    }

    /// Releases the port.
    package func end() {
        for client in clients { close(client) }
        close(listener)
    }
}
