// What an origin's answers mean for players and for the cache; pure.
package import HTTP
import URISyntax

/// Microseconds from the start of a request to the end of each of its phases.
package struct RequestPhases: Sendable, Equatable {
    package var name: Int64
    package var connect: Int64
    /// 0 without TLS.
    package var secure: Int64
    package var firstByte: Int64

    package init(name: Int64 = 0, connect: Int64 = 0, secure: Int64 = 0, firstByte: Int64 = 0) {
        self.name = name
        self.connect = connect
        self.secure = secure
        self.firstByte = firstByte
    }

    /// How long each phase took by itself.
    package var text: String {
        let start = max(connect, secure)
        var parts = ["name \(Self.time(name))", "connect \(Self.time(connect - name))"]
        if secure > 0 { parts.append("TLS \(Self.time(secure - connect))") }
        parts.append("first byte \(Self.time(firstByte - start))")
        return parts.joined(separator: ", ")
    }

    private static func time(_ microseconds: Int64) -> String {
        let count = max(0, microseconds)
        return count < 1_000 ? "under 1 ms" : "\(count / 1_000) ms"
    }
}

/// Judges single answers of an origin.
package enum OriginFindings {
    package static func times(_ phases: RequestPhases, _ check: String) -> Finding {
        guard phases.firstByte > 3_000_000 else { return .ok(check, phases.text) }
        return .warning(
            check, phases.text,
            "players wait as long at the start; look at the line, or at --doh-url and --origin-proxy"
        )
    }

    /// A status that is no content.
    package static func refusal(_ status: Int, _ check: String) -> Finding {
        let advice =
            switch status {
            case 401, 403:
                "give the headers that its player sends, with --header or behind | as in Kodi: Referer, User-Agent, Cookie, Authorization; a signed URL may have expired"
            case 404, 410: "compare the URL with the page that it comes from; it may have expired"
            case 407: "give a password in --origin-proxy"
            case 429, 503:
                "the origin wants fewer requests; try later, and set --origin-limit HOST=N"
            case 451: "the origin does not serve this place; see --origin-proxy"
            case 500...: "the origin is at fault; try later"
            default: "look at the URL"
            }
        return .problem(check, "the origin answered \(status)", advice)
    }

    /// Whether pages of other sites may read an answer (Fetch, CORS protocol).
    package static func crossOrigin(_ fields: Fields, page: String) -> Finding {
        let allowed = fields.first(.accessControlAllowOrigin)
        if allowed == "*" || allowed == page { return .ok("CORS direct", "pages may read it") }
        let what =
            allowed == nil
            ? "no Access-Control-Allow-Origin" : "only pages of other sites may read it"
        return .warning(
            "CORS direct", what,
            "pages of other sites cannot play it direct; through Sluice they can")
    }

    package static func playlistType(_ fields: Fields) -> Finding {
        let check = "playlist type"
        let types = [
            "application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl",
            "audio/x-mpegurl",
        ]
        let type = fields.first(.contentType).flatMap { MediaType($0) }
        let name = type.map { "\($0.type)/\($0.subtype)" }
        if let name, types.contains(name) { return .ok(check, name) }
        return .warning(
            check, name.map { "\($0) is no type of playlists" } ?? "no Content-Type",
            "players that go by the type do not play it direct; Sluice sends application/vnd.apple.mpegurl"
        )
    }

    package static func segmentType(_ fields: Fields) -> Finding {
        let check = "segment type"
        guard let text = fields.first(.contentType), let type = MediaType(text) else {
            return .warning(
                check, "no Content-Type", "Sluice sends the one that the playlist implies")
        }
        let name = "\(type.type)/\(type.subtype)"
        let isMedia = ["video", "audio"].contains(type.type) || name == "text/vtt"
        if isMedia || name == "application/mp4" { return .ok(check, name) }
        return .warning(
            check, "\(name) is no type of media", "Sluice sends the one that the playlist implies")
    }

    /// What tells versions of a segment apart.
    package static func validators(_ fields: Fields) -> Finding {
        let check = "validators"
        if EntityTag.strongText(fields) != nil { return .ok(check, "a strong ETag") }
        if fields.contains(.lastModified) { return .ok(check, "Last-Modified") }
        let what = fields.contains(.etag) ? "a weak ETag only" : "neither ETag nor Last-Modified"
        return .warning(
            check, what,
            "a broken transfer is continued only after bytes around the gap were compared; have the origin send a strong ETag"
        )
    }

    /// Fields of a segment that keep it from being stored.
    package static func caching(_ fields: Fields) -> Finding {
        let check = "caching"
        if CacheControl(fields).noStore {
            return .warning(
                check, "Cache-Control: no-store",
                "it is passed on and not kept, so it plays neither twice nor without the network; have the origin leave it out"
            )
        }
        if fields.listMembers(.vary).contains("*") {
            return .warning(
                check, "Vary: *",
                "no later request can be answered from the store; have the origin leave it out")
        }
        let control = CacheControl(fields)
        var facts: [String] = []
        if let age = control.maxAge { facts.append("max-age \(age) s") }
        if control.noCache != nil { facts.append("no-cache") }
        if control.private != nil { facts.append("private") }
        return .ok(check, facts.isEmpty ? "may be kept" : facts.joined(separator: ", "))
    }

    /// - Parameters:
    ///   - status: of the answer.
    ///   - fields: of the answer.
    ///   - count: bytes of the body that came.
    ///   - asked: the first and the last byte that were asked for.
    ///   - check: what the finding is called.
    /// - Returns: whether these bytes came, and are said to be these.
    package static func range(
        _ status: Int, _ fields: Fields, count: Int, asked: ClosedRange<Int64>, _ check: String
    ) -> Finding {
        switch status {
        case 206:
            guard case .satisfied(let first, let last, let total)? = ContentRange.parse(fields)
            else {
                return .problem(
                    check, "206 without a usable Content-Range",
                    "have the origin send it (RFC 9110, 14.4); parts of it cannot be told apart")
            }
            let end = min(asked.upperBound, (total ?? .max) - 1)
            guard first == asked.lowerBound, last == end else {
                return .problem(
                    check, "asked for \(asked.lowerBound)-\(end), given \(first)-\(last)",
                    "the origin answers with another range; seeking in it fails")
            }
            guard Int64(count) == last - first + 1 else {
                return .problem(
                    check, "\(count) bytes under a Content-Range of \(last - first + 1)",
                    "the origin's body does not fit its head")
            }
            return .ok(check, "206 with the bytes that were asked for")
        case 200:
            return .warning(
                check, "ranges are ignored",
                "a broken transfer starts again; Sluice gives players ranges of what it has")
        case 416:
            return .warning(check, "416: it is shorter", "look at the segment")
        default:
            return .problem(
                check, "answered \(status) to a range", "have the origin answer 206 or 200")
        }
    }

    /// - Parameter status: of the answer to a range with an `If-Range` that fits no version.
    /// - Returns: whether the condition was heeded.
    package static func conditionalRange(_ status: Int) -> Finding {
        let check = "If-Range"
        guard status == 206 else { return .ok(check, "a former version is not continued") }
        return .warning(
            check, "a part is given although the condition does not hold",
            "a file that changes under its URL could be mixed; give each version a URL of its own")
    }

    /// - Parameters:
    ///   - direct: the origin's bytes.
    ///   - proxied: Sluice's.
    /// - Returns: whether they are the same, or where they part.
    package static func comparison(_ direct: [UInt8], _ proxied: [UInt8]) -> Finding {
        let check = "same bytes"
        if direct == proxied {
            return .ok(check, "\(direct.count) bytes are the same direct and through Sluice")
        }
        let place = zip(direct, proxied).enumerated().first { $1.0 != $1.1 }?.offset
        let difference = place.map { "from byte \($0) on" } ?? "in length"
        return .problem(
            check,
            "direct \(direct.count) bytes, through Sluice \(proxied.count), different \(difference)",
            "ask again; if it stays so, purge the URL, and send a report")
    }
}
