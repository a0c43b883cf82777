import HTTP
import Numbers
import URISyntax

/// TLS sessions with origins in their persistent form: pure, text in and text out.
///
/// The first line names the format, the second the trusted certificates; each further line is a
/// session: scheme, host and port of the origin, the second of the wall clock at which it expires,
/// and the session in base64 (d2i_SSL_SESSION(3)).
struct SessionFile: Sendable, Equatable {
    struct Ticket: Sendable, Equatable {
        /// Seconds since 1970.
        var end: Int64
        var bytes: [UInt8]
    }

    /// The file of trusted certificates in use; empty for the system's.
    ///
    /// A session replaces a check of certificates, so it is valid only for the trust settings of
    /// that check.
    let trust: String
    private(set) var tickets: [Origin: Ticket] = [:]

    static let format = "sluice TLS sessions 1"
    static let mostTickets = 256
    /// A session with a long chain of certificates has about 3 KB.
    static let mostBytes = 16 << 10
    /// Sessions are kept for a day at most, since a certificate may be revoked meanwhile.
    static let longestLife: Int64 = 86_400

    init(trust: String) { self.trust = trust.filter { $0 != "\n" } }

    /// Parses a file; nil for another format.
    ///
    /// Sessions made with other trust settings, expired ones and malformed lines are dropped.
    init?(_ text: String, trust: String, now: Int64) {
        self.init(trust: trust)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 2, lines[0] == Self.format else { return nil }
        guard lines[1] == "trust \(self.trust)" else { return }
        for line in lines.dropFirst(2).prefix(Self.mostTickets) {
            let words = line.split(separator: " ")
            guard words.count == 3, let url = try? AbsoluteURL("\(words[0])/"),
                url.scheme == .https,
                let end = ExternalNumber.integer(
                    String(words[1]),
                    in: now.addingSaturated(1)...now.addingSaturated(Self.longestLife)),
                words[2].utf8.count <= Self.mostBytes * 2,
                let bytes = Base64.decode(words[2].utf8), !bytes.isEmpty
            else { continue }
            tickets[url.origin] = Ticket(end: end, bytes: bytes)
        }
    }

    /// Returns the text of the file without expired sessions.
    func text(now: Int64) -> String {
        var text = "\(Self.format)\ntrust \(trust)\n"
        let live = tickets.filter { $0.value.end > now }
        for (origin, ticket) in live.sorted(by: { $0.value.end > $1.value.end }) {
            text += "\(origin) \(ticket.end) \(Base64.encode(ticket.bytes))\n"
        }
        return text
    }

    /// Keeps the latest session of an origin, replacing a former one.
    mutating func keep(_ bytes: [UInt8], of origin: Origin, until end: Int64, now: Int64) {
        guard bytes.count <= Self.mostBytes, end > now else { return }
        if tickets.count >= Self.mostTickets, tickets[origin] == nil {
            guard let first = tickets.min(by: { $0.value.end < $1.value.end }) else { return }
            tickets[first.key] = nil
        }
        tickets[origin] = Ticket(end: min(end, now + Self.longestLife), bytes: bytes)
    }

    /// Returns the session of an origin; nil if there is none or it has expired.
    func session(of origin: Origin, now: Int64) -> [UInt8]? {
        guard let ticket = tickets[origin], ticket.end > now else { return nil }
        return ticket.bytes
    }
}
