// A scene under a mount, where HTTP's caching rules apply (RFC 9110, 9111).

extension QuietScenes {
    /// One request of such a scene and its expected result.
    private struct Step {
        var pause: Int64 = 0
        var fields: [(String, String)] = []
        let status: Int
        var range: Range<Int>?
        /// The number of requests that the CDN has seen by then.
        let seen: Int
    }

    /// A resource is stored, reused, revalidated and replaced; it answers conditions and ranges.
    func playMounted(_ done: @escaping () -> Void) {
        let file = file(60_000)
        file.cacheControl = "max-age=10, stale-while-revalidate=10"
        let tag = file.tag(file.current) ?? ""
        let steps = [
            Step(status: 200, seen: 1), Step(status: 200, seen: 1),
            Step(fields: [("If-None-Match", tag)], status: 304, seen: 1),
            Step(fields: [("If-Match", "\"other\"")], status: 200, seen: 2),
            Step(fields: [("Range", "bytes=100-199")], status: 206, range: 100..<200, seen: 2),
            Step(fields: [("Range", "bytes=70000-")], status: 416, seen: 2),
            Step(fields: [("Cache-Control", "max-stale")], status: 200, seen: 2),
            Step(fields: [("Cache-Control", "no-cache")], status: 200, seen: 3),
            Step(fields: [("Cache-Control", "no-store")], status: 200, seen: 4),
            // Served stale while it is revalidated; then it is fresh again.
            Step(pause: 12, status: 200, seen: 5), Step(pause: 2, status: 200, seen: 5),
            // Too old even for stale-while-revalidate.
            Step(pause: 30, status: 200, seen: 6),
            Step(
                pause: 30, fields: [("Cache-Control", "only-if-cached")], status: 504, seen: 6),
        ]
        take(steps[...], of: file) { [weak self] in
            guard let self else { return }
            file.change(to: 50_000, at: world.now)
            take([Step(pause: 30, status: 200, seen: 7)], of: file) { [weak self] in
                self?.take([Step(status: 200, seen: 7)], of: file, then: done)
            }
        }
    }

    private func take(_ steps: ArraySlice<Step>, of file: OriginFile, then: @escaping () -> Void) {
        guard let step = steps.first else { return then() }
        world.after(step.pause * World.second) { [weak self] in
            guard let self, !wasStopped else { return }
            makeHelper().get("/mt\(file.path)", fields: step.fields) { [weak self] response in
                guard let self, !wasStopped else { return }
                let number = 14 - steps.count
                let what = "step \(number), \(step.fields.first?.1 ?? "plain")"
                world.note("scene \(scene): \(what): \(response.status) \(response.body.count)")
                expect(
                    response.status == step.status, .status,
                    "\(what): \(response.status) where \(step.status) is right")
                if response.status == 200 || response.status == 206 {
                    expect(
                        checks.media(file.path, Checks.Asked(step.range), response), .answered,
                        "\(what): not answered whole")
                }
                // A background revalidation ends a little later.
                world.after(World.second) { [weak self] in
                    self?.expect(
                        file.seen.count == step.seen, .singleFetch,
                        "\(what): the CDN saw \(file.seen.count) requests, not \(step.seen)")
                    self?.take(steps.dropFirst(), of: file, then: then)
                }
            }
        }
    }
}
