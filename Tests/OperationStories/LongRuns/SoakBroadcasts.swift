// Players of a soak: live streams, longer windows, recordings and downloads.
import FixtureCDN
import ScenarioSupport

extension SoakPlayer {
    /// The number of the first segment of a list.
    private func first(of list: String, _ url: String) throws -> Int {
        let tag = "#EXT-X-MEDIA-SEQUENCE:"
        let line = list.split(separator: "\n").first { $0.hasPrefix(tag) }
        guard let number = line.flatMap({ Int($0.dropFirst(tag.utf8.count)) }) else {
            throw SoakComplaint(text: "no number in \(url)", excuses: [])
        }
        return number
    }

    /// Reloads a live list and plays what is new in it.
    ///
    /// `seen` is the number of the segment that was played last.
    func live(_ stream: SoakCatalogue.Live, seen: inout Int?) throws {
        let link = url(stream.path)
        let before = stream.window.mediaSequence
        let sent = ContinuousClock.now
        let text = try list(link)
        let first = try first(of: text, link)
        // A list may be reused for its target duration, and be read while the window moves.
        if first < before - 2 {
            throw SoakComplaint(text: "\(link) shows \(first), the origin showed \(before)")
        }
        let links = uriLines(text)
        if let seen, first + links.count - 1 < seen {
            throw SoakComplaint(
                text: "\(link) went back from \(seen) to \(first + links.count - 1)", since: sent)
        }
        for (index, link) in links.enumerated() where first + index > seen ?? first + 3 {
            try fetch(link, of: stream.segments[(first + index) % stream.segments.count])
            seen = first + index
        }
        world.count("live reloads")
        world.pause(.milliseconds(900 + dice.roll(300)))
    }

    /// Plays somewhere in a window that reaches back further than the origin's.
    func timeShift(_ stream: SoakCatalogue.Live) throws {
        let all: [SoakDisturbance] = [.restart, .outage, .fullDisk]
        let link = "/proxy?url=\(percentEncoded(world.cdn.url(stream.path)))&dvr=90s"
        let text = try list(link, excuses: all)
        var isGap = false
        var names: [(link: String, isGap: Bool)] = []
        for line in text.split(separator: "\n") {
            if line == "#EXT-X-GAP" { isGap = true }
            guard !line.hasPrefix("#") else { continue }
            names.append((String(line), isGap))
            isGap = false
        }
        guard !names.isEmpty else { throw SoakComplaint(text: "nothing in \(link)", excuses: all) }
        let start = dice.roll(names.count)
        for (link, isGap) in names[start...].prefix(4) {
            guard let name = originName(link) else {
                throw SoakComplaint(text: "a link of no segment: \(link)", excuses: [])
            }
            let path = "/bytes/\(SoakCatalogue.liveBytes)/\(name)"
            guard !isGap else {
                let answer = try ask(link, excuses: all)
                guard answer.status == 200, answer.body.isEmpty else {
                    throw SoakComplaint(text: "a gap: \(Self.words(link, answer))", excuses: all)
                }
                continue
            }
            try fetch(link, of: path, excuses: all)
        }
        world.count("plays in longer windows")
        world.pause(.milliseconds(700 + dice.roll(600)))
    }

    /// Records some seconds of a stream, plays the recording, and removes it.
    func recording(_ stream: SoakCatalogue.Live) throws {
        let all: [SoakDisturbance] = [.restart, .outage, .fullDisk]
        let encoded = percentEncoded(world.cdn.url(stream.path))
        let made = try ask("/api/recordings?url=\(encoded)&for=12s", method: "POST", excuses: all)
        guard let id = members("id", in: made.text).first else {
            throw SoakComplaint(text: Self.words("POST recording", made), excuses: all)
        }
        let text = awaited("recordings/\(id)", within: 60) {
            $0.contains("\"state\":\"done\"") || $0.contains("\"state\":\"failed\"")
        }
        defer { _ = try? ask("/api/recordings/\(id)/forget", method: "POST") }
        guard !world.isOver else { return }
        guard text.contains("\"state\":\"done\""), let play = members("play", in: text).first else {
            throw SoakComplaint(text: "a recording failed: \(text)", excuses: all)
        }
        let list = try list(play, excuses: all)
        let links = uriLines(list)
        guard list.contains("#EXT-X-ENDLIST"), links.count >= 6 else {
            throw SoakComplaint(
                text: "a recording of 12 s has \(links.count) segments: \(text)", excuses: all)
        }
        for link in links where !list.contains("#EXT-X-GAP") {
            guard let name = originName(link) else {
                throw SoakComplaint(text: "a link of no segment: \(link)", excuses: [])
            }
            try fetch(link, of: "/bytes/\(SoakCatalogue.liveBytes)/\(name)", excuses: [.restart])
        }
        world.count("recordings played")
        rest(2_000)
    }

    /// Downloads a title, plays it, and plays it again whenever the origin is gone.
    ///
    /// `kept` are downloads that are complete, with their titles.
    func download(_ number: Int, kept: inout [(id: String, title: SoakCatalogue.Title)]) throws {
        let all: [SoakDisturbance] = [.restart, .outage, .fullDisk]
        // A complete title needs no origin, and no room.
        for (_, title) in kept where world.isDisturbed(by: [.outage, .fullDisk]) || dice.oneIn(4) {
            try play(title)
            world.count("downloads played again")
        }
        let title = world.catalogue.downloads[number % world.catalogue.downloads.count]
        let url = DownloadStage.encoded(world.cdn.url(title.path))
        let made = try ask("/api/downloads?url=\(url)", method: "POST", excuses: all)
        guard made.status == 201, let id = members("id", in: made.text).first else {
            throw SoakComplaint(text: Self.words("POST download", made), excuses: all)
        }
        var text = ""
        for _ in 0..<3 {
            text = awaited("downloads/\(id)", within: 90) {
                ["complete", "failed", "paused"].contains(members("state", in: $0).first ?? "")
            }
            guard members("state", in: text).first == "paused" else { break }
            _ = try ask("/api/downloads/\(id)/resume", method: "POST", excuses: all)
        }
        guard !world.isOver else { return }
        guard members("state", in: text).first == "complete" else {
            _ = try ask("/api/downloads/\(id)/cancel", method: "POST", excuses: all)
            throw SoakComplaint(text: "a download did not end: \(text)", excuses: all)
        }
        try play(title)
        world.count("downloads completed")
        kept.append((id, title))
        while kept.count > 3 {
            let old = kept.removeFirst()
            _ = try ask("/api/downloads/\(old.id)/cancel", method: "POST", excuses: all)
        }
        world.pause(.milliseconds(dice.roll(4_000)))
    }

    /// Plays a title that is stored completely.
    private func play(_ title: SoakCatalogue.Title) throws {
        let (links, paths) = try links(of: title, excuses: [.restart])
        for (link, path) in zip(links, paths) {
            try fetch(link, of: path, excuses: [.restart])
        }
    }

    /// Asks the API until it says something, or for so many seconds.
    private func awaited(
        _ path: String, within seconds: Int, _ isExpected: (String) -> Bool
    ) -> String {
        var text = ""
        _ = eventually(within: .seconds(seconds), pausing: .milliseconds(200)) {
            guard !world.isOver else { return true }
            // The daemon may be starting at this moment.
            text = (try? ask("/api/\(path)"))?.text ?? text
            return isExpected(text)
        }
        return text
    }
}
