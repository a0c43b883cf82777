// A title: the entry that a player started from, with all resources fetched for it.
package import HLS
package import Model
import Posix
package import Routing
package import Store
package import URISyntax

/// One title with the current state of its stored objects.
package struct Title: Sendable {
    package enum Kind: String, Sendable {
        /// All its playlists have ended.
        case vod
        /// One of its playlists is still growing.
        case live
        /// A media file without a playlist.
        case file
        /// Its entry is not stored, so that the structure is unknown.
        case parts
    }

    package var id: SessionID
    package var name: String
    /// The entry; nil if unknown.
    package var url: AbsoluteURL?
    /// The key of the entry's object; nil if it is not stored.
    package var entryKey: ObjectKey?
    package var kind: Kind
    /// True if its player gave headers or credentials, which its URL in listings does not have.
    var hasHeaders = false
    var isPinned: Bool
    /// The number of objects fetched for it, and the disk space they use.
    var objects: Int
    package var bytes: Int64
    /// Bytes of objects that it needs but that were fetched for other titles.
    package var sharedBytes: Int64
    /// The keys of those objects.
    package var sharedKeys: [ObjectKey]
    /// The time of the last use of any of its objects; nil without any.
    var lastUsed: WallTime?
    package var variants: [TitleVariant]

    /// The most complete variant stream, or the most complete of all variants if there are no
    /// streams; nil for loose parts.
    package var best: TitleVariant? {
        let streams = variants.filter { $0.kind == .variant }
        return (streams.isEmpty ? variants : streams).max { left, right in
            (left.isWhole ? 1 : 0, left.keptSeconds, left.share)
                < (right.isWhole ? 1 : 0, right.keptSeconds, right.share)
        }
    }

    /// The key systems that prevent playback with stored keys; nil without any.
    package var protection: ContentProtection? {
        variants.compactMap(\.protection).reduce(nil) { sum, protection in
            guard var sum else { return protection }
            sum.add(protection)
            return sum
        }
    }

    /// The member of a listing; figures are in seconds, bytes and seconds since 1970.
    package var json: JSONValue {
        let best = best
        return .object([
            .init("id", .text(id.text)),
            .init("name", .text(name)),
            // Redacted, since queries may contain tokens.
            .init("url", url.map { .text($0.redacted) } ?? .null),
            .init("has_headers", .truth(hasHeaders)),
            .init("kind", .text(kind.rawValue)),
            .init("pinned", .truth(isPinned)),
            .init("percent", .number(best?.percent ?? 0)),
            .init("kept_seconds", .fraction(best?.keptSeconds ?? 0)),
            .init("seconds", .optional(best?.seconds)),
            .init("whole", .truth(best?.isWhole ?? false)),
            .init("objects", .number(Int64(objects))),
            .init("bytes", .number(bytes)),
            .init("shared_bytes", .number(sharedBytes)),
            .init("last_played", .optional(lastUsed?.seconds)),
            .init("encryption", protection.json),
            .init("variants", .list(variants.map(\.json))),
        ])
    }
}

extension TitleVariant {
    package var json: JSONValue {
        .object([
            .init("kind", .text(kind.rawValue)),
            .init("label", .text(label)),
            .init("bandwidth", .optional(bandwidth)),
            .init("percent", .number(percent)),
            .init("kept_seconds", .fraction(keptSeconds)),
            .init("seconds", .optional(seconds)),
            .init("whole", .truth(isWhole)),
            .init("live", .truth(isLive)),
            .init("encryption", protection.json),
        ])
    }
}

extension ContentProtection? {
    /// The encryption of a title whose keys cannot be stored; null without it.
    package var json: JSONValue {
        map { protection in
            .object([
                .init("systems", .list(protection.systems.map(JSONValue.text))),
                .init("missing_keys", .number(Int64(protection.missingKeys))),
                .init("text", .text(protection.text)),
            ])
        } ?? .null
    }
}
