import Lookahead

/// The player of `FeedModel`: sequential requests, up to eight seconds ahead of playback.
final class ModelPlayer {
    let item: Int
    private let terms: FeedModel.Terms
    private let start: Double
    private var resource = 0
    /// When the current request was sent; nil if there is none.
    private var askedAt: Double?
    private var readyAt: Double
    private var loaded = 0.0
    private var stalled = 0.0
    private(set) var stalls = 0
    /// Seconds to the first frame.
    private(set) var shownAfter: Double?
    private var shownAt = 0.0

    /// Bytes of the first segment needed to show a picture.
    static let firstFrame = 60_000.0

    init(_ item: Int, at now: Double, _ terms: FeedModel.Terms) {
        self.item = item
        self.terms = terms
        start = now
        readyAt = now + terms.own
    }

    func advance(_ model: FeedModel) {
        // A few requests served from the store fit into one step.
        while resource < 3 + terms.segments, model.now >= readyAt, isRoom(at: model.now) {
            let name = FeedModel.Name(item: item, resource: resource)
            if askedAt == nil {
                askedAt = model.now
                model.perform(
                    model.planner.played(item, FeedModel.url(item, resource), at: model.now))
            }
            let present = model.stored[name] ?? 0
            model.given[name] = max(model.given[name] ?? 0, present)
            if resource == 3, shownAfter == nil, present >= Self.firstFrame {
                shownAfter = model.now - start
                shownAt = model.now
            }
            guard model.isWhole(name) else { return ask(model, name) }
            finish(at: model.now)
        }
    }

    private func isRoom(at now: Double) -> Bool {
        guard askedAt == nil, shownAfter != nil else { return true }
        return loaded - (now - shownAt - stalled) <= 8
    }

    private func ask(_ model: FeedModel, _ name: FeedModel.Name) {
        if let transfer = model.transfers.first(where: { $0.name == name }) {
            transfer.isPlayback = true
            transfer.leftAt = nil
            return
        }
        model.begin(name, to: model.size(of: name), isPlayback: true)
    }

    private func finish(at now: Double) {
        if resource > 3 {
            let late = now - shownAt - stalled - loaded
            if late > 0.05 {
                stalls += 1
                stalled += late
            }
        }
        if resource >= 3 { loaded += terms.segmentSeconds }
        resource += 1
        askedAt = nil
        readyAt = now + terms.own
    }
}
