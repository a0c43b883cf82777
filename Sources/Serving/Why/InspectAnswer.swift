// Answers `/api/inspect`: a stored playlist, with what the specification finds wrong in it.
import CachePolicy
import HLS
import HTTP
import Library
import Model
import Store
import URISyntax

extension WhyAnswers {
    /// Reads the playlist that is stored for a URL against the rules of `sluice inspect`.
    ///
    /// Asks no origin: the console fetches a list through the daemon first, as a player would.
    func inspect(_ subject: WhySubject) -> AdministrationAnswer {
        guard let object = context.store.peek(subject.resource.key),
            let stored = ObjectFacts.of(object), object.isComplete, let total = object.total
        else {
            return .failure(
                .notFound, "nothing whole is stored for this URL; fetch it through the daemon first"
            )
        }
        guard stored.head.isPlaylist, let base = try? AbsoluteURL(stored.head.finalURL) else {
            return .failure(.unprocessableContent, "what is stored for this URL is no playlist")
        }
        guard let body = try? readBody(of: object, count: Int(total)) else {
            return .failure(.internalServerError, "the stored playlist cannot be read")
        }
        do throws(PlaylistError) {
            let outline = try PlaylistOutline(
                body, base: base, variables: context.variables(subject.resource.session.id))
            return .value(.ok, InspectAnswer(outline: outline, body: body, url: base).json)
        } catch {
            return .failure(.unprocessableContent, "the stored playlist cannot be read: \(error)")
        }
    }
}

/// The outline of a playlist beside its text, bounded in size.
struct InspectAnswer {
    /// Bytes of text that are given; the rules have read all.
    static let mostText = 512 << 10
    static let mostViolations = 500
    static let mostEntries = 500

    let outline: PlaylistOutline
    let body: [UInt8]
    /// Where the playlist came from, after redirects.
    let url: AbsoluteURL

    var json: JSONValue {
        let summary = outline.summary
        let isMedia = summary.kind == .media
        let seconds = Double(summary.totalDuration.components.seconds)
        return .object([
            .init("url", .text(url.redacted)), .init("kind", .text(summary.kind.rawValue)),
            .init("version", .number(Int64(summary.version))),
            .init("live", isMedia ? .truth(summary.isLive) : .null),
            .init("segments", isMedia ? .number(Int64(summary.segmentCount)) : .null),
            .init("seconds", isMedia ? .fraction(seconds) : .null),
            .init("features", .list(outline.features.map(JSONValue.text))),
            .init(
                "encryption",
                .list(outline.encryption.map { .text("\($0.method) (\($0.keyFormat))") })),
            .init("unknown_tags", .list(outline.unknownTags.prefix(50).map { .text($0.name) })),
            .init("refusal", outline.refusal.map { .text($0.description) } ?? .null),
            .init(
                "violations",
                .list(outline.violations.prefix(Self.mostViolations).map(Self.violation))),
            .init("entries", .list(entries)),
            .init("text", .text(String(decoding: body.prefix(Self.mostText), as: UTF8.self))),
            .init("cut", .truth(body.count > Self.mostText)),
        ])
    }

    private static func violation(_ violation: Violation) -> JSONValue {
        .object([
            .init("line", .number(Int64(violation.line))), .init("tag", .text(violation.tag)),
            .init("level", .text(violation.level.rawValue)),
            .init("section", .text(violation.section)), .init("message", .text(violation.message)),
        ])
    }

    /// What the playlist names; URLs are whole, since a next question needs them.
    private var entries: [JSONValue] {
        outline.entries.lazy.compactMap { entry in entry.url.map { (entry, $0) } }
            .prefix(Self.mostEntries).map { entry, url in
                .object([
                    .init("kind", .text(entry.kind.rawValue)),
                    .init("line", .number(Int64(entry.line))), .init("url", .text(url.text)),
                ])
            }
    }
}
