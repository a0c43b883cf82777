// Heads of HTTP/1.1, as both ends of the world read them (RFC 9112).

/// The start line and the fields of a message.
struct MessageHead {
    let startLine: Substring
    /// With names in lower case.
    let fields: [(name: String, value: String)]

    /// Takes a head from the front of received bytes; nil while it is incomplete.
    init?(from input: inout [UInt8]) {
        guard let end = input.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let text = String(decoding: input[..<end.lowerBound], as: UTF8.self)
        input.removeFirst(end.upperBound)
        let lines = text.split(separator: "\r\n")
        startLine = lines.first ?? ""
        fields = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            return (parts[0].lowercased(), String(parts[1].drop { $0 == " " }))
        }
    }
}
