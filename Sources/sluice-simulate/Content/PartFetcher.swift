// The players that fetch what low-latency playlists name.

/// Fetches the parts and segments of a low-latency stream, and its preload hints.
final class PartFetcher: Player {
    private let live: LowLatencyStream
    private var waiting: [PartList.Part] = []
    private var known: Set<Int> = []
    private var isBusy = false

    init(_ live: LowLatencyStream, _ checks: Checks) {
        self.live = live
        super.init("parts of \(live.name)", checks)
    }

    func add(_ list: PartList) {
        let wanted = list.parts.suffix(3) + (random.chance(60) ? list.hint.map { [$0] } ?? [] : [])
        for part in wanted where known.insert(part.number * 8 + part.index).inserted {
            waiting.append(part)
        }
        if waiting.count > 12 { waiting.removeFirst(waiting.count - 12) }
        if !isBusy { next() }
        if random.chance(5), let segment = list.segments.last { fetchSegment(segment) }
    }

    private func fetchSegment(_ segment: (number: Int, path: String, url: String)) {
        let fetcher = OneFile(segment.path, segment.url, checks)
        segments.append(fetcher)
        fetcher.start()
    }

    private var segments: [OneFile] = []

    override func stop() {
        super.stop()
        for fetcher in segments { fetcher.stop() }
    }

    private func next() {
        guard !waiting.isEmpty, !wasStopped else { return isBusy = false }
        isBusy = true
        let part = waiting.removeFirst()
        let place = live.place(part.number, part.index)
        // A preload hint gives the start of a range; the stream knows its end.
        let range = part.range.map { $0.upperBound == .max ? (place.range ?? $0) : $0 }
        if let range, range != place.range {
            return world.fault(
                .status, "\(name): part \(part.number).\(part.index) is said to be \(range)")
        }
        // Some players request the rest of the segment.
        let isOpen = part.range?.upperBound == .max && random.chance(50)
        let last = range.flatMap { isOpen ? nil : $0.upperBound - 1 }
        let asked = range.map { Checks.Asked.range(first: $0.lowerBound, last: last) } ?? .whole
        fetch(
            part.url, asked.fields,
            check: { [checks, weak self] response in
                if isOpen, let range {
                    self?.live.checkOpen(part.number, from: range.lowerBound, response)
                }
                if checks.media(place.path, asked, response) { return true }
                return (self?.failures ?? 9) > 1
            },
            then: { [weak self] _ in self?.next() })
    }
}

/// Requests one file, a few times at most.
final class OneFile: Player {
    private let path: String
    private let url: String

    init(_ path: String, _ url: String, _ checks: Checks) {
        (self.path, self.url) = (path, url)
        super.init("reader of \(path)", checks)
    }

    override func start() {
        fetch(
            url,
            check: { [checks, path, weak self] response in
                checks.media(path, .whole, response) || (self?.failures ?? 9) > 2
            },
            then: { [weak self] _ in self?.end() })
    }
}
