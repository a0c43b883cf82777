/// The limits of a feed and the priorities of its items: one set of numbers, so that tests can
/// compare sets.
package struct FeedParameters: Sendable, Hashable {
    /// The number of items fetched in the direction of travel.
    ///
    /// Default 6.
    package var ahead = 6
    /// The number of items fetched behind the active one, in case the viewer goes back.
    ///
    /// Default 1.
    package var behind = 1
    /// The minimum number of bytes fetched of a neighbour.
    ///
    /// Default 200 kB.
    package var headBytes: Int64 = 200_000
    /// The number of nearest neighbours that get `headBytes` and `headSeconds`; farther ones get
    /// `startBytes` only.
    ///
    /// Default 3.
    package var deep = 3
    /// This many bytes of each neighbour are fetched before more of any: enough for a first
    /// picture.
    ///
    /// Default 100 kB.
    package var startBytes: Int64 = 100_000
    /// The minimum playing time fetched of a neighbour, in seconds.
    ///
    /// Default 5.
    package var headSeconds = 5.0
    /// The cost of the active item, multiplied by its weight.
    package var activeCost = 1.0
    /// The cost of a neighbour, multiplied by its weight.
    package var neighbourCost = 1.0
    /// The weight of a picture without a weight of its own.
    ///
    /// Default 1.
    package var pictureWeight = 1.0
    /// The weight of a video, or of an item of unknown kind, without a weight of its own.
    ///
    /// Default 1; 2 in the published scheme.
    package var videoWeight = 1.0
    /// The maximum total cost of the active item and its neighbours.
    ///
    /// Default 8.
    package var costBudget = 8.0
    /// The maximum number of bytes fetched ahead for the active item and its neighbours together;
    /// what the viewer has reached no longer counts.
    ///
    /// Default 64 MB.
    package var byteBudget: Int64 = 64_000_000
    /// The playing time that the active item must have left before its neighbours share the line;
    /// until then they use it only while no player does.
    ///
    /// Default 4 s.
    package var secureSeconds = 4.0
    /// The same for the first bytes of neighbours, once the viewer has settled.
    ///
    /// Default 2 s.
    package var startSecureSeconds = 2.0
    /// A viewer that stays with an item this long is assumed to watch it; before that, the first
    /// bytes of the neighbours have priority over the rest of this item.
    ///
    /// Default 0.8 s.
    package var settleSeconds = 0.8
    /// The playing time of the active item that is fetched ahead of its viewer: the item is fetched
    /// completely, but not before it is likely to be watched.
    ///
    /// Default 8 s, as far ahead as players fetch by themselves.
    package var activeSeconds = 8.0
    /// The maximum number of concurrent fetches; keys and initialization sections, which are small,
    /// are fetched in addition.
    ///
    /// Default 3: enough to fill the line, and the nearest neighbour is ready sooner.
    package var parallel = 3
    /// The maximum number of concurrent fetches for one item.
    ///
    /// Default 1.
    package var parallelOfItem = 1
    /// True to fetch the whole active item before anything of its neighbours.
    package var activeFirst = false

    package init() {}

    /// True if anything may be fetched ahead.
    package var isOn: Bool { costBudget > 0 && byteBudget > 0 }

    /// The set with the best results in tests.
    package static let standard = FeedParameters()

    /// A published scheme: the active item always whole, the inactive ones on both sides only their
    /// first 200 KB, one transfer each, all items concurrently; a picture weighs 1, a video 2,
    /// under one budget.
    package static let published: FeedParameters = {
        var made = FeedParameters()
        made.ahead = 2
        made.behind = 2
        made.deep = 100
        made.headSeconds = 0
        made.pictureWeight = 1
        made.videoWeight = 2
        made.costBudget = 10
        made.secureSeconds = 0
        made.startSecureSeconds = 0
        made.settleSeconds = 0
        made.startBytes = 0
        made.parallel = 5
        made.parallelOfItem = 1
        made.activeFirst = true
        made.activeSeconds = 1e12
        return made
    }()

    /// No fetching ahead, as a baseline for comparisons.
    package static let none: FeedParameters = {
        var made = FeedParameters()
        made.costBudget = 0
        return made
    }()

    /// Returns the set with a name: `default`, `published` or `none`; nil for another name.
    package init?(named name: String) {
        switch name {
        case "default": self = .standard
        case "published": self = .published
        case "none": self = .none
        default: return nil
        }
    }

    /// Sets one parameter by its name in the API.
    ///
    /// - Returns: an error message; nil if the value was set.
    package mutating func set(_ name: String, _ value: Double) -> String? {
        guard value >= 0, value <= 1e12 else { return "\(name) is 0 or more" }
        switch name {
        case "ahead" where value <= 100: ahead = Int(value)
        case "behind" where value <= 100: behind = Int(value)
        case "deep" where value <= 100: deep = Int(value)
        case "ahead", "behind", "deep": return "\(name) is at most 100"
        case "headBytes": headBytes = Int64(value)
        case "startBytes": startBytes = Int64(value)
        case "headSeconds": headSeconds = value
        case "activeCost": activeCost = value
        case "neighbourCost": neighbourCost = value
        case "pictureWeight": pictureWeight = value
        case "videoWeight": videoWeight = value
        case "costBudget": costBudget = value
        case "byteBudget": byteBudget = Int64(value)
        case "activeSeconds": activeSeconds = value
        case "secureSeconds": secureSeconds = value
        case "settleSeconds": settleSeconds = value
        case "startSecureSeconds": startSecureSeconds = value
        case "parallel" where (1...32).contains(value): parallel = Int(value)
        case "parallelOfItem" where (1...32).contains(value): parallelOfItem = Int(value)
        case "parallel", "parallelOfItem": return "\(name) is 1...32"
        default: return "there is no parameter \(name)"
        }
        return nil
    }
}
