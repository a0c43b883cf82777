// Links of rewritten playlists.

/// The origin URL of a link that is unsigned or has its signature in front, decoded from its handle
/// with separate code; nil for short forms and for other texts.
package func origin(of link: String) -> String? {
    let parts = link.split(separator: "?", maxSplits: 1)
    let path = parts[0].split(separator: "/")
    var handle = path.count >= 2 ? path[path.count - 2] : ""
    if parts.count == 2,
        let found = parts[1].split(separator: "&").first(where: { $0.hasPrefix("u=") })
    {
        handle = found.dropFirst(2)
    }
    guard let bytes = base64URL(handle), bytes.count > 7, bytes[0] & ~169 == 0 else { return nil }
    let start = (bytes[0] & 8 == 0 ? 7 : 11) + (bytes[0] & 32 == 0 ? 0 : 12)
    guard bytes.count > start else { return nil }
    return (bytes[0] & 1 == 0 ? "http://" : "https://")
        + String(decoding: bytes.dropFirst(start), as: UTF8.self)
}

/// The file name of that URL, without its query.
package func originName(_ link: String) -> String? {
    origin(of: link).flatMap { $0.prefix { $0 != "?" }.split(separator: "/").last }.map(String.init)
}

/// A handle of an `http` URL that no daemon wrote.
///
/// - Parameters:
///   - url: the URL.
///   - flags: the first byte of the handle.
///   - signature: what stands behind it.
/// - Returns: the text of the handle in a link.
package func handMadeHandle(
    of url: String, flags: UInt8 = 0, signature: [UInt8] = []
) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    let bytes = [flags] + signature + [1, 2, 3, 4, 5, 6] + Array(url.utf8.dropFirst(7))
    var text: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for byte in bytes {
        bits = (bits & 0x3F) << 8 | UInt32(byte)
        count += 8
        while count >= 6 {
            count -= 6
            text.append(alphabet[Int(bits >> UInt32(count) & 0x3F)])
        }
    }
    if count > 0 { text.append(alphabet[Int(bits << UInt32(6 - count) & 0x3F)]) }
    return String(decoding: text, as: UTF8.self)
}

/// The path of a link, which players compare between reloads.
package func path(of link: String) -> String { String(link.prefix { $0 != "?" }) }

private func base64URL(_ text: Substring) -> [UInt8]? {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var bits: UInt32 = 0
    var count = 0
    var bytes: [UInt8] = []
    for character in text.utf8 {
        guard let value = alphabet.firstIndex(of: character) else { return nil }
        bits = bits << 6 | UInt32(value)
        count += 6
        if count >= 8 {
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
    }
    return bytes
}
