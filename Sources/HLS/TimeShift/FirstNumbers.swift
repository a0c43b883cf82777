/// The numbers with which a longer window begins: the origin's, or those that the list of another
/// rendition has for the same place.
struct FirstNumbers: Hashable, Sendable {
    /// The highest origin number that is used for a first segment; higher ones are reduced by a
    /// multiple of it.
    ///
    /// With EXT-X-SKIP an origin's number is the sum of two that are each up to 2^53 - 1.
    private static let highestStart = 1 << 52

    /// The media sequence number of the first segment; never negative.
    private(set) var number = 0
    /// The discontinuity sequence number of the first segment; never negative.
    private(set) var discontinuity = 0
    /// The epoch of the rendition that the window was put in step with; nil if with none.
    private(set) var epoch: Int?
    /// True if the window began before that of the other rendition, and is still in that epoch: the
    /// origin may have restarted between the two readings.
    var isBehind = false

    init() {}

    /// Chooses the numbers of `first`, the first of the listed segments; `newest` is the last.
    init(
        of first: LiveWindow.Segment, newest: LiveWindow.Segment, inStepWith sibling: TimeShift?,
        _ limits: TimeShift.Limits
    ) {
        // Numbers in the shifted list only rise, and must stay within what a snapshot can store.
        number = Self.reduced(first.originNumber)
        discontinuity = Self.reduced(first.originDiscontinuity)
        guard let sibling, let other = sibling.segments.last,
            // Renditions that the origin numbers independently cannot be kept in step.
            abs(first.originNumber - other.originNumber) <= limits.placeholderCount
        else { return }
        number = max(first.originNumber + other.number - other.originNumber, 0)
        let step = first.originDiscontinuity - sibling.originDiscontinuity
        let isClose = abs(step) <= limits.discontinuityStep
        discontinuity = max(other.discontinuity + (isClose ? step : 0), 0)
        epoch = sibling.epoch
        // That of a restored window is not known until it is read.
        isBehind =
            sibling.windowStart <= other.number
            && newest.originNumber < sibling.originNumber(of: sibling.windowStart)
    }

    private static func reduced(_ number: Int) -> Int {
        number > highestStart ? number % highestStart : number
    }
}
