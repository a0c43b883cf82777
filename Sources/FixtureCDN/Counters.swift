import Glibc
import Synchronization

/// The request log of the sample CDN, for tests and scripts.
extension FixtureCDN {
    /// Every request since the last `resetLog()`, in order of arrival, including those in progress.
    package var requests: [LoggedRequest] { log.requests }

    /// Number of requests for a path or, if it has a query, for exactly that target; nil: all.
    package func requestCount(_ path: String? = nil) -> Int { requests(path).count }

    /// Content bytes sent for a path; nil: for all.
    package func bytesSent(_ path: String? = nil) -> Int {
        requests(path).reduce(0) { $0 + $1.bodyBytes }
    }

    /// The non-empty ranges of the representation sent for a path, in order of arrival.
    package func bytesServedRanges(_ path: String) -> [Range<Int>] {
        requests(path).filter { $0.bodyBytes > 0 && (200...299).contains($0.status) }
            .map { $0.bodyOffset..<($0.bodyOffset + $0.bodyBytes) }
    }

    /// The offset of the first byte sent more than once for a path; nil: none was.
    package func firstByteServedTwice(_ path: String) -> Int? {
        let ranges = bytesServedRanges(path).sorted { $0.lowerBound < $1.lowerBound }
        var end = 0
        for range in ranges {
            if range.lowerBound < end { return range.lowerBound }
            end = range.upperBound
        }
        return nil
    }

    /// The highest number of concurrent requests since the last `resetLog()`.
    package var peakConcurrentRequests: Int { log.peak }

    /// Requests in progress now.
    package var activeRequests: Int { log.active }

    /// Clears the log and restarts the count of `fails`.
    package func resetLog() {
        log.reset()
        state.withLock { $0.faultsUsed = [:] }
    }

    private func requests(_ path: String?) -> [LoggedRequest] {
        guard let path else { return log.requests }
        return log.requests.filter { $0.matches(path) }
    }

    /// Answers a request for a path under `/__`; nil for any other.
    ///
    /// Such requests are not logged.
    func control(_ request: WireRequest) -> String? {
        guard request.path.hasPrefix("/__") else { return nil }
        let path = request.query["path"]
        switch (request.path, path) {
        case ("/__log", _):
            return requests(path).map { $0.json + "\n" }.joined()
        case ("/__count", _):
            return "{\"requests\":\(requestCount(path)),\"bytes\":\(bytesSent(path)),"
                + "\"peak\":\(peakConcurrentRequests),\"active\":\(activeRequests),"
                + "\"connections\":\(acceptedConnections),\"open\":\(openConnections)}\n"
        case ("/__reset", _):
            resetLog()
        case ("/__set", let path?):
            var behaviour = Behaviour()
            behaviour.apply(request.query)
            setBehaviour(request.query.pairs.count > 1 ? behaviour : nil, for: path)
        case ("/__shape", _):
            return setShape(request.query)
        case ("/__live", let path?):
            return makeWindow(path, request.query)
        case ("/__lowlatency", let path?):
            return makeLowLatency(path, request.query)
        case ("/__advance", let path?):
            state.withLock { $0.windows[path] }?.advance(by: Int(request.query["by"] ?? "") ?? 1)
        case ("/__end", let path?):
            state.withLock { $0.windows[path] }?.end()
        default:
            return "{\"error\":\"unknown control path or no path argument\"}\n"
        }
        return "{\"ok\":true}\n"
    }

    /// `/__lowlatency?path=P&from=Q&part=S&parts=N&ranges=1&dumb=1`: a low-latency stream of the
    /// segments of the VOD playlist Q, in N parts of S seconds each, by the clock; `dumb=1` does not
    /// hold reloads.
    private func makeLowLatency(_ path: String, _ query: QueryArguments) -> String {
        var settings = LowLatencyStream.Settings()
        settings.isClocked = true
        settings.partDuration = query["part"].flatMap { Double($0) } ?? 0.5
        settings.partsPerSegment = query["parts"].flatMap { Int($0) } ?? 4
        settings.partsAreRanges = query["ranges"] == "1"
        settings.blocks = query["dumb"] != "1"
        guard settings.partDuration > 0, settings.partsPerSegment > 0, let from = query["from"],
            let stream = lowLatencyStream(of: from, settings: settings)
        else {
            return "{\"error\":\"from= names no playlist of .ts files without encryption in the "
                + "folder, or part= or parts= is not above 0\"}\n"
        }
        _ = lowLatency(path, stream)
        return "{\"ok\":true}\n"
    }

    /// `/__live?path=P&from=Q&window=N&stepped=1`: a window over the segments of the VOD playlist Q.
    private func makeWindow(_ path: String, _ query: QueryArguments) -> String {
        guard let from = query["from"], let folder, !from.contains(".."),
            let source = Resource(file: folder + from, type: "")
        else { return "{\"error\":\"from= names no playlist of the folder\"}\n" }
        let bytes = ContentReader(source.content).read(0..<source.content.length)
        let prefix = from[...(from.lastIndex(of: "/") ?? from.startIndex)]
        let window = LiveWindow(
            vod: String(decoding: bytes, as: UTF8.self), prefix: String(prefix),
            windowSize: Int(query["window"] ?? "").flatMap { $0 > 0 ? $0 : nil } ?? 3,
            drive: query["stepped"] == "1" ? .stepped : .clock)
        _ = live(path, window)
        return "{\"ok\":true}\n"
    }
}
