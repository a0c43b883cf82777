// The decision about what is stored for a resource, as values: requests act on it, `why` shows it.
package import CachePolicy
import HLS
package import HTTP
package import Posix
package import Store

/// What a stored object is good for in a resource's place.
package enum StoredUse: Equatable {
    /// Served as it is or in part.
    case media
    /// A playlist or JSON text, read and rewritten for each session.
    case text
    /// Not at all.
    case unusable(Fault)

    /// Why a stored object is not used.
    package enum Fault: Equatable, Sendable, CaseIterable {
        case halfText
        case noPlaylist
        case halfDecoded

        /// The reason for people.
        package var text: String {
            switch self {
            case .halfText: "half a text cannot be read"
            case .noPlaylist: "the place is a playlist's, the object is none"
            case .halfDecoded: "half a decoded body cannot be taken up again"
            }
        }
    }
}

extension Resource {
    /// What an object that was found under the key is good for.
    package func use(of object: StoredObject, _ facts: ObjectFacts) -> StoredUse {
        use(of: facts, isComplete: object.isComplete, total: object.total)
    }

    /// What an object with these facts is good for; `total` is its length, where that is known.
    package func use(of facts: ObjectFacts, isComplete: Bool, total: Int64?) -> StoredUse {
        if facts.head.isPlaylist || role == .json {
            return isComplete ? .text : .unusable(.halfText)
        }
        if role == .playlist { return .unusable(.noPlaylist) }
        if !isComplete, total == nil, decodesContent { return .unusable(.halfDecoded) }
        return .media
    }

    /// Whether what is no playlist is reusable for as long as it is kept, told without the question
    /// that `Freshness` would answer so: nearly every hit is one of those.
    package var holdsWhileKept: Bool {
        guard case .media = policy else { return false }
        switch role {
        // HTTP decides of these, always or in live streams.
        case .json?, .key?: return false
        default: return true
        }
    }

    /// The question of what may serve where the origin fails.
    package func question(_ facts: ObjectFacts, _ playlist: PlaylistFacts?, _ asked: Asked)
        -> Freshness.Question
    {
        // What playback leaves to HTTP is decoded for one user; others need the shared rules.
        let rules =
            facts.head.kind == nil && asked.isShared
            ? ReuseRules(facts.head, kind: .shared) : facts.rules
        return Freshness.Question(
            policy: policy, rules: rules, playlist: playlist, requestFields: asked.fields,
            now: asked.now, steadyAge: asked.steadyAge(of: facts))
    }

    /// The question of what may be used as it is.
    ///
    /// Playlists say themselves how long they hold; steering manifests and asset lists do not, and
    /// change by the minute: HTTP decides.
    package func freshnessQuestion(_ facts: ObjectFacts, _ playlist: PlaylistFacts?, _ asked: Asked)
        -> Freshness.Question
    {
        var question = question(facts, playlist, asked)
        if role == .json, question.policy == .media { question.policy = .rfc }
        return question
    }
}

/// What a decision needs to know of the request and of us.
package struct Asked: Sendable {
    package let fields: Fields
    package var now: WallTime
    /// The same by the monotonic clock; nil where it was not read.
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
