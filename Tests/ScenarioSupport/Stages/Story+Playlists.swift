package import FixtureCDN

/// What stories about playlists need in addition: fixtures, entries, links.
extension Story {
    /// A story whose CDN serves the files of `Fixtures/media`.
    package convenience init(playing arguments: [String]) throws {
        try self.init(arguments, cdnFolder: Fixture.path("media"))
    }

    /// Starts a daemon on a cache folder; `arguments` are appended to the common ones.
    package static func serve(
        _ cacheFolder: String, _ arguments: [String] = [],
        _ environment: [(name: String, value: String)] = []
    ) throws -> DaemonProcess {
        let usual = [
            "serve", "--port", "0", "--allow-private", "--cache-dir", cacheFolder, "--look-ahead",
            "off",
        ]
        return try DaemonProcess(usual + arguments, environment: environment)
    }

    /// Ends this story's daemon and starts one with other settings on the same cache.
    package func succeed(_ arguments: [String]) throws -> DaemonProcess {
        stop()
        return try Self.serve(cacheFolder, arguments)
    }

    /// The entry of a path with further arguments: `h_Referer=x` and others, already encoded.
    package func entry(_ path: String, _ arguments: String) -> String {
        "\(daemon.baseURL)/proxy?url=\(percentEncoded(cdn.url(path)))&\(arguments)"
    }

    /// Requests a link of a rewritten playlist, or any path of the daemon.
    package func follow(
        _ link: String, headers: [WireHead.Field] = [], method: String = "GET"
    ) throws -> PlayerResponse {
        try player().get(link, headers: headers, method: method)
    }

    /// The links of the playlist under a path of the CDN, in order.
    package func links(in path: String) throws -> [String] {
        ScenarioSupport.links(try get(path).text)
    }
}

/// Every URI of a playlist in its order: URI lines and `URI="..."` attributes.
package func links(_ playlist: String) -> [String] {
    playlist.split(separator: "\n").flatMap { line -> [String] in
        guard line.hasPrefix("#") else { return [String(line)] }
        return line.split(separator: "URI=\"", omittingEmptySubsequences: false).dropFirst()
            .map { String($0.prefix { $0 != "\"" }) }
    }
}

/// The URI lines alone.
package func uriLines(_ playlist: String) -> [String] {
    playlist.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
}

/// The link of the last part in a list.
package func lastPartLink(_ list: PlayerResponse) -> String? {
    list.text.split(separator: "\n").last { $0.hasPrefix("#EXT-X-PART:") }
        .flatMap { links(String($0)).first }
}

/// The name of that part at the origin.
package func lastPart(_ list: PlayerResponse) -> String? { lastPartLink(list).flatMap(originName) }

/// Percent-encodes all but the unreserved characters of RFC 3986.
package func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF")
    return text.utf8.reduce(into: "") { output, byte in
        let character = Character(UnicodeScalar(byte))
        if byte < 0x80, character.isLetter || character.isNumber || "-._~".contains(character) {
            output.append(character)
        } else {
            output += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
        }
    }
}

/// A VOD media playlist of these URIs, each four seconds long.
package func vod(_ uris: [String], head: [String] = []) -> String {
    let lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-TARGETDURATION:4"] + head
    let segments = uris.flatMap { ["#EXTINF:4.0,", $0] }
    return (lines + segments + ["#EXT-X-ENDLIST"]).joined(separator: "\n") + "\n"
}

/// A live window of the segments `s0.ts` to `s99.ts` that is stepped by hand.
package func liveWindow(target: Int = 1, window: Int = 3) -> LiveWindow {
    LiveWindow(
        segments: (0..<100).map { .init(uri: "s\($0).ts", duration: Double(target)) },
        targetDuration: target, windowSize: window)
}
