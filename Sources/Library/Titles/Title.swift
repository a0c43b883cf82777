// A title: what a player started from, with all that was fetched for it.
package import HLS
package import Model
import Posix
package import Routing
package import Store
package import URISyntax

/// One title as it is kept now.
package struct Title: Sendable {
    package enum Kind: String, Sendable {
        /// Every list of it has its end.
        case vod
        /// A list of it still grows.
        case live
        /// A media file without a playlist.
        case file
        /// Its entry is not kept (any more), so that nothing tells what belongs together.
        case parts
    }

    package var id: SessionID
    package var name: String
    /// The entry; nil when it is not known.
    package var url: AbsoluteURL?
    /// The key of the entry's object; nil when it is not kept.
    package var entryKey: ObjectKey?
    package var kind: Kind
    var isPinned: Bool
    /// Objects that were fetched for it, and the bytes that they take on the disk.
    var objects: Int
    package var bytes: Int64
    /// Bytes of objects that it needs and that were fetched for other titles.
    package var sharedBytes: Int64
    /// The keys of those objects.
    package var sharedKeys: [ObjectKey]
    /// When anything of it was last used; nil when nothing is kept.
    var lastUsed: WallTime?
    package var variants: [TitleVariant]

    /// The best kept of its variant streams, or else of all it has; nil for loose parts.
    package var best: TitleVariant? {
        let streams = variants.filter { $0.kind == .variant }
        return (streams.isEmpty ? variants : streams).max { left, right in
            (left.isWhole ? 1 : 0, left.keptSeconds, left.share)
                < (right.isWhole ? 1 : 0, right.keptSeconds, right.share)
        }
    }

    /// What keeps it from being played with stored keys; nil where nothing does.
    package var protection: ContentProtection? {
        variants.compactMap(\.protection).reduce(nil) { sum, protection in
            guard var sum else { return protection }
            sum.add(protection)
            return sum
        }
    }

    /// The member of a listing; figures are seconds, bytes and seconds since 1970.
    package var json: JSONValue {
        let best = best
        return .object([
            .init("id", .text(id.text)),
            .init("name", .text(name)),
            // Queries carry tickets, and those are no one else's.
            .init("url", url.map { .text($0.redacted) } ?? .null),
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
    /// What encrypts a title whose keys cannot be stored; null where nothing does.
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
