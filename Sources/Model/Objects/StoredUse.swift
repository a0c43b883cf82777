// How a stored object may be used for a resource, as values: requests act on them, `why` shows
// them.
package import CachePolicy
import HLS
package import HTTP
package import Posix
package import Store

/// How a stored object is used for a resource.
package enum StoredUse: Equatable {
    /// Served unchanged, whole or in part.
    case media
    /// A playlist or JSON text, parsed and rewritten for each session.
    case text
    /// Not used.
    case unusable(Fault)

    /// Why a stored object is not used.
    package enum Fault: Equatable, Sendable, CaseIterable {
        case halfText
        case noPlaylist
        case halfDecoded

        /// The reason as text.
        package var text: String {
            switch self {
            case .halfText: "only a part of the text is stored, which cannot be read"
            case .noPlaylist: "a playlist is expected, and the stored object is not one"
            case .halfDecoded: "only a part of a decoded body is stored, which cannot be resumed"
            }
        }
    }
}

extension Resource {
    /// Returns how an object found under the key is used.
    package func use(of object: StoredObject, _ facts: ObjectFacts) -> StoredUse {
        use(of: facts, isComplete: object.isComplete, total: object.total)
    }

    /// Returns how an object with these facts is used; `total` is its length, if known.
    package func use(of facts: ObjectFacts, isComplete: Bool, total: Int64?) -> StoredUse {
        if facts.head.isPlaylist || role == .json {
            return isComplete ? .text : .unusable(.halfText)
        }
        if role == .playlist { return .unusable(.noPlaylist) }
        if !isComplete, total == nil, decodesContent { return .unusable(.halfDecoded) }
        return .media
    }

    /// True if a stored response that is not a playlist stays fresh while it is stored; decides
    /// nearly every hit without a `Freshness.Question`, which would give the same answer.
    package var holdsWhileKept: Bool {
        guard case .media = policy else { return false }
        switch role {
        // HTTP decides for JSON always, and for keys in live streams.
        case .json?, .key?: return false
        default: return true
        }
    }

    /// Returns the question whether a stored response may be used when the origin fails.
    package func question(
        _ facts: ObjectFacts, _ playlist: PlaylistFacts?, _ circumstances: RequestCircumstances
    )
        -> Freshness.Question
    {
        // Where playback defers to HTTP, the facts have the rules of a private cache; several users
        // need the shared rules.
        let rules =
            circumstances.isShared && !facts.head.followsHTTP
            ? ReuseRules(facts.head, kind: .shared) : facts.rules
        return Freshness.Question(
            policy: policy, rules: rules, playlist: playlist, requestFields: circumstances.fields,
            now: circumstances.now, steadyAge: circumstances.steadyAge(of: facts))
    }

    /// Returns the question whether a stored response may be used without revalidation.
    ///
    /// Playlists imply their own freshness; steering manifests and asset lists do not and change by
    /// the minute, so HTTP decides for them.
    package func freshnessQuestion(
        _ facts: ObjectFacts, _ playlist: PlaylistFacts?, _ circumstances: RequestCircumstances
    )
        -> Freshness.Question
    {
        var question = question(facts, playlist, circumstances)
        if role == .json, question.policy == .media { question.policy = .rfc }
        return question
    }
}

/// What a freshness decision depends on besides the stored response: the request, the time and the
/// kind of cache.
package struct RequestCircumstances: Sendable {
    package let fields: Fields
    package var now: WallTime
    /// The same time by the monotonic clock; nil if it was not read.
    package var steadyNow: Monotonic?
    package let isShared: Bool

    package init(
        fields: Fields, now: WallTime, steadyNow: Monotonic? = nil, isShared: Bool
    ) {
        self.fields = fields
        self.now = now
        self.steadyNow = steadyNow
        self.isShared = isShared
    }

    fileprivate func steadyAge(of facts: ObjectFacts) -> Interval? {
        guard let steadyNow, let times = facts.times else { return nil }
        return steadyNow - times.received
    }
}
