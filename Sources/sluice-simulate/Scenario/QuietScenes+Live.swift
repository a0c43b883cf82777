// Scenes about live streams: reused segment names, a segment that is still growing.
import CSimulation

extension QuietScenes {
    // MARK: A live stream that reuses names

    func playNamesAgain(_ done: @escaping () -> Void) {
        let live = LiveStream(name: "ring", window: 3, first: 0, reusesNames: true)
        checks.cdn.add(live)
        // The first restart goes back so little that it looks like a stale intermediate cache.
        begin(live, times: 3) { [weak self] in
            self?.begin(live, times: 6) { [weak self] in self?.begin(live, times: 3, then: done) }
        }
    }

    /// Restarts the encoder and follows its output.
    private func begin(_ live: LiveStream, times: Int, then: @escaping () -> Void) {
        live.restart(at: world.now)
        for number in 0..<40 {
            checks.cdn.file(live.segment(number))?.change(to: 20_000 + number, at: world.now)
        }
        world.after(World.second) { [weak self] in self?.follow(live, times: times, then: then) }
    }

    private func follow(_ live: LiveStream, times: Int, then: @escaping () -> Void) {
        guard times > 0 else { return then() }
        fetchList(Self.entry(live.list)) { [weak self] list in
            guard let self, let newest = list.segments.last else { return }
            fetch(
                newest.url,
                check: { [weak self, checks] response in
                    guard checks.media(newest.path, .whole, response) else {
                        return false
                    }
                    guard let file = checks.cdn.file(newest.path) else { return true }
                    self?.expect(
                        response.body == file.bytes(0..<file.current.size, of: file.current),
                        .bytes,
                        "\(newest.path) is of before the encoder's restart")
                    return true
                },
                then: { [weak self] _ in
                    self?.world.after(LiveStream.target) { [weak self] in
                        self?.follow(live, times: times - 1, then: then)
                    }
                })
        }
    }

    /// Restarts the encoder after the wall clock was set back: the playlist received later still
    /// counts as the newer one.
    func playClockSetBack(_ done: @escaping () -> Void) {
        let live = LiveStream(name: "set-back", window: 3, first: 0, reusesNames: true)
        checks.cdn.add(live)
        begin(live, times: 6) { [weak self] in
            csim_shift_wall(-2 * 3_600 * World.second)
            self?.begin(live, times: 3) {
                csim_shift_wall(2 * 3_600 * World.second)
                done()
            }
        }
    }

    // MARK: A growing segment

    /// A player requests a growing segment from an offset on: the response ends with the segment.
    func playGrowing(_ done: @escaping () -> Void) {
        let live = LowLatencyStream(
            world, name: "growing", partsAreRanges: true, hidesEnds: true, first: 0)
        checks.cdn.regions.append(live)
        askForHint(of: live, done)
    }

    private func askForHint(of live: LowLatencyStream, _ done: @escaping () -> Void) {
        makeHelper().get(Self.entry(live.list)) { [weak self] response in
            guard let self, !wasStopped else { return }
            guard let list = PartList(response.body), let hint = list.hint, let range = hint.range
            else { return expect(false, .answered, "a list without a hint") }
            // From the second part on, the playlist has marked the segment as growing.
            guard hint.index > 0 else {
                return world.after(LowLatencyStream.part) { [weak self] in
                    self?.askForHint(of: live, done)
                }
            }
            let first = range.lowerBound
            makeHelper().get(hint.url, fields: [("Range", "bytes=\(first)-")]) {
                [weak self] response in
                guard let self, !wasStopped else { return }
                world.note(
                    "scene \(scene): \(response.status) \(response.first("content-range") ?? "") \(response.body.count)"
                )
                let path = live.place(hint.number, hint.index).path
                live.checkOpen(hint.number, from: first, response)
                expect(
                    checks.media(path, .range(first: first, last: nil), response), .answered,
                    "the rest of a segment that grows is not answered whole")
                done()
            }
        }
    }
}
