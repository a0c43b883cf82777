/// What a feed may cost and in which order its items are got ready: one set of numbers, so that a
/// stand can compare sets.
package struct FeedParameters: Sendable, Hashable {
    /// Items in the direction of travel that are got ready.
    ///
    /// Default 6.
    package var ahead = 6
    /// Items behind the active one that are got ready, in case the viewer goes back.
    ///
    /// Default 1.
    package var behind = 1
    /// At least so many bytes of a neighbour.
    ///
    /// Default 200 kB.
    package var headBytes: Int64 = 200_000
    /// The nearest neighbours that get as much as the next numbers say; farther ones get their first
    /// bytes only.
    ///
    /// Default 3.
    package var deep = 3
    /// So many bytes of each neighbour come before more of any: enough for a first picture.
    ///
    /// Default 100 kB.
    package var startBytes: Int64 = 100_000
    /// At least so many seconds of a neighbour's playing time.
    ///
    /// Default 5.
    package var headSeconds = 5.0
    /// Cost units of the active item, times its own weight.
    package var activeCost = 1.0
    /// Cost units of a neighbour, times its own weight.
    package var neighbourCost = 1.0
    /// The weight of a picture that the order gives none.
    ///
    /// Default 1.
    package var pictureWeight = 1.0
    /// The weight of a video, and of an item of which nothing is known yet, that the order gives none.
    ///
    /// Default 1; 2 in the published scheme.
    package var videoWeight = 1.0
    /// Cost units that the active item and its neighbours may have together.
    ///
    /// Default 8.
    package var costBudget = 8.0
    /// Bytes that may be fetched ahead for the active item and its neighbours together.
    ///
    /// Default 64 MB.
    package var byteBudget: Int64 = 64_000_000
    /// Playing time that the active item must have in hand before its neighbours get a share of the
    /// line; until then they use it only while no player does.
    ///
    /// Default 4 s.
    package var secureSeconds = 4.0
    /// The same for the first bytes of neighbours, once the viewer has settled.
    ///
    /// Default 2 s.
    package var startSecureSeconds = 2.0
    /// A viewer that stays with an item for so long is taken to watch it: before, the first bytes of
    /// the neighbours are needed more than the rest of this one.
    ///
    /// Default 0.8 s.
    package var settleSeconds = 0.8
    /// Playing time of the active item that is fetched before its viewer comes to it: the item comes
    /// whole, but not before it is likely to be watched.
    ///
    /// Default 8 s, as far ahead as players fetch by themselves.
    package var activeSeconds = 8.0
    /// Fetches at once; keys and initialization sections, which are small, come beside them.
    ///
    /// Default 3: as many fill the line, and the nearest neighbour has what it needs sooner.
    package var parallel = 3
    /// Fetches at once for one item.
    ///
    /// Default 1.
    package var parallelOfItem = 1
    /// True brings the whole active item before anything of its neighbours.
    package var activeFirst = false

    package init() {}

    /// Whether anything may be fetched.
    package var isOn: Bool { costBudget > 0 && byteBudget > 0 }

    /// What is found best on the stand.
    package static let standard = FeedParameters()

    /// A published scheme: the active item always whole, the inactive ones on both sides only their
    /// first 200 KB, one transfer each, all items at once; a picture weighs 1, a video 2, under one
    /// budget.
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

    /// Nothing ahead at all, as a measure for the others.
    package static let none: FeedParameters = {
        var made = FeedParameters()
        made.costBudget = 0
        return made
    }()

    /// The set of a name: `default`, `published` or `none`; nil for another name.
    package init?(named name: String) {
        switch name {
        case "default": self = .standard
        case "published": self = .published
        case "none": self = .none
        default: return nil
        }
    }

    /// Sets one number by its name in the API.
    ///
    /// - Returns: What is wrong with it; nil where it was taken.
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
