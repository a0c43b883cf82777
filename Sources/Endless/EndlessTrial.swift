// Whether a body without a length is a live stream or a file.
//
// Head and first bytes of a transport stream are the same for both. What differs is its speed: an
// origin has no more of a live stream than has been played, so it arrives as fast as its own clock
// runs; a file arrives as fast as the line allows.
package import HTTP
package import Posix

/// The part of a response head that says whether its body may be endless.
package struct EndlessHead: Sendable, Equatable {
    /// The format to look for.
    package let format: StreamFormat
    /// True if the origin describes itself as a radio station, which has no files.
    package let isStation: Bool

    /// Returns nil if the body has an end, or a format that cannot be joined in the middle.
    ///
    /// A validator says that there is a file (RFC 9110 section 8.8). `Accept-Ranges` does not:
    /// servers in front of a panel add it to whatever they pass on.
    ///
    /// - Parameters:
    ///   - status: the status of the response.
    ///   - fields: its fields.
    package init?(_ status: HTTPStatus, _ fields: Fields) {
        guard status == .ok, !fields.contains(.contentLength), !fields.contains(.etag),
            !fields.contains(.lastModified), !fields.contains(.contentEncoding),
            !fields.contains(.contentRange)
        else { return nil }
        let text = fields.first(.contentType) ?? "application/octet-stream"
        let type = text.prefix { $0 != ";" && $0 != " " }.lowercased()
        switch type {
        case "video/mp2t", "video/mpeg", "video/mp2ts", "video/x-mpegts", "application/mp2t",
            "video/vnd.dlna.mpeg-tts", "application/octet-stream", "binary/octet-stream":
            format = .transport
        case "audio/mpeg", "audio/mp3", "audio/aac", "audio/aacp", "audio/x-aac":
            format = .audio
        default: return nil
        }
        isStation = Self.stationFields.contains { fields.contains($0) }
    }

    private static let stationFields: [FieldName] = [
        "icy-name", "icy-br", "icy-genre", "icy-pub", "icy-url", "icy-metaint",
    ]
}

/// Decides between a live stream and a file while the body arrives.
package struct EndlessTrial: Sendable {
    package enum Verdict: Sendable, Equatable {
        case undecided
        case endless
        case file
    }

    /// Bytes within which the format must show.
    static let prefix: Int64 = 256 << 10
    /// Bytes within which tables and a clock must follow, which fast streams repeat twice a second.
    static let preamble: Int64 = 16 << 20
    /// A stream whose own clock has run for so long has no tables; its viewers enter at any packet.
    static let longestWithoutTables = Interval.seconds(3)
    /// Origins send what a player needs to start at once; the speed is measured after that.
    static let settling = Interval.seconds(1)
    /// Times after that at which the speed is compared, since some origins send live streams in
    /// pieces of several seconds.
    static let checks: [Interval] = [3, 6, 12, 24, 48].map { Interval.seconds($0) }
    /// Seconds of the stream's clock in a second of ours, for a live stream.
    static let speeds = 0.7...1.4
    /// A live origin has no stream that is farther ahead of our clock.
    static let longestLead = Interval.seconds(60)

    /// A body that is still undecided after so many bytes is a file: half a minute of the fastest
    /// streams.
    static let mostBytes: Int64 = 512_000_000

    private let isStation: Bool
    /// Later by the time for which the transfer was paused.
    private var begunAt: Monotonic
    /// When the transfer was paused; nil while it is not.
    private var pausedSince: Monotonic?
    private var settled: (at: Monotonic, media: Interval)?
    private var nextCheck = 0

    /// Starts with the head of the response.
    ///
    /// - Parameters:
    ///   - head: the head.
    ///   - now: the time.
    package init(_ head: EndlessHead, now: Monotonic) {
        isStation = head.isStation
        begunAt = now
    }

    /// Notes that the transfer is paused, so that the origin's speed does not show.
    ///
    /// - Parameter now: the time.
    package mutating func pause(now: Monotonic) {
        if pausedSince == nil { pausedSince = now }
    }

    /// Notes that the transfer goes on: the time since `pause` does not count.
    ///
    /// - Parameter now: the time.
    package mutating func resume(now: Monotonic) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        begunAt = begunAt + (now - since)
        if let former = settled { settled = (former.at + (now - since), former.media) }
    }

    /// Looks at what has arrived.
    ///
    /// - Parameters:
    ///   - bytes: the number of bytes that have arrived.
    ///   - scanner: what they contain.
    ///   - now: the time.
    /// - Returns: the verdict, which is final unless it is `undecided`.
    package mutating func observe(
        bytes: Int64, _ scanner: StreamScanner, now: Monotonic
    ) -> Verdict {
        guard scanner.isRecognised || Self.lacksTables(scanner) else {
            return bytes < (scanner.isPlausible ? Self.preamble : Self.prefix) ? .undecided : .file
        }
        if isStation { return .endless }
        let now = pausedSince ?? now
        let media = scanner.clock.elapsed
        let lead = media.inSeconds - (now - begunAt).inSeconds
        if lead > Self.longestLead.inSeconds || bytes > Self.mostBytes { return .file }
        guard now - begunAt >= Self.settling else { return .undecided }
        guard let settled else {
            settled = (now, media)
            return .undecided
        }
        let passed = now - settled.at
        guard passed >= Self.checks[nextCheck] else { return .undecided }
        let speed = (media.inSeconds - settled.media.inSeconds) / passed.inSeconds
        if Self.speeds.contains(speed) { return .endless }
        nextCheck += 1
        return nextCheck < Self.checks.count ? .undecided : .file
    }

    /// True for a transport stream with a clock, but without tables.
    private static func lacksTables(_ scanner: StreamScanner) -> Bool {
        scanner.isPlausible && scanner.clock.elapsed >= longestWithoutTables
    }
}
