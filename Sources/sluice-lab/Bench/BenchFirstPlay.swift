// A timed virtual player that starts a title from any URL, directly or through a daemon.
import Glibc
import Posix
import URISyntax

/// The figures of one play; times in seconds from the request for the multivariant playlist.
struct FirstPlayFigures: Encodable {
    /// Until the bytes of the first segment needed for a picture have arrived.
    var firstFrame = 0.0
    /// Until the first segment is complete: the start of playback.
    var firstSegment = 0.0
    /// The number of stalls after that, and their seconds in total.
    var stalls = 0
    var stalled = 0.0
    /// Requests to the CDN and bytes it sent meanwhile.
    var cdnRequests = 0
    var cdnBytes: Int64 = 0
}

/// Sends requests as players do: the multivariant playlist, the first variant stream, the key and
/// the initialization section, then segment after segment on the same connection while its buffer
/// is not full.
struct FirstPlayer {
    /// The URL of the multivariant playlist.
    let entry: String
    /// Bytes of the first segment needed for a picture.
    let frame: Int
    /// Seconds buffered ahead of the playback position.
    var buffer = 8.0

    private struct List {
        var resources: [AbsoluteURL] = []
        var segments: [(url: AbsoluteURL, seconds: Double)] = []
    }

    private enum Fault: Error { case broken }

    /// Plays to the end; blocks.
    ///
    /// Nil if any request failed.
    func play() -> FirstPlayFigures? {
        let connection = BenchConnection()
        var figures = FirstPlayFigures()
        do {
            let start = Monotonic.now()
            let list = try self.list(connection)
            for resource in list.resources { _ = try get(resource, connection) }
            try play(list, from: start, connection, &figures)
            return figures
        } catch {
            return nil
        }
    }

    private func get(
        _ url: AbsoluteURL, enough: Int = .max, _ connection: BenchConnection
    ) throws -> BenchFetch {
        guard let fetch = connection.get(url.text, enough: enough) else { throw Fault.broken }
        return fetch
    }

    private func play(
        _ list: List, from start: Monotonic, _ connection: BenchConnection,
        _ figures: inout FirstPlayFigures
    ) throws {
        // Seconds of media received, and when playback began.
        var loaded = 0.0
        var shownSince: Monotonic?
        for (url, seconds) in list.segments {
            if let shownSince { wait(loaded: loaded, since: shownSince, figures) }
            let isFirst = shownSince == nil
            let fetch = try get(url, enough: isFirst ? frame : .max, connection)
            let now = Monotonic.now()
            if let shownSince {
                let late = now.seconds(since: shownSince) - figures.stalled - loaded
                // A stall shorter than a frame is not visible.
                if late > 0.02 {
                    figures.stalls += 1
                    figures.stalled += late
                }
            } else {
                shownSince = now
                figures.firstFrame = (fetch.enoughAt ?? now).seconds(since: start)
                figures.firstSegment = now.seconds(since: start)
            }
            loaded += seconds
        }
    }

    /// Waits until the buffer has room for another segment.
    private func wait(loaded: Double, since: Monotonic, _ figures: FirstPlayFigures) {
        while loaded - (Monotonic.now().seconds(since: since) - figures.stalled) > buffer {
            usleep(5_000)
        }
    }

    // MARK: Lists

    private func list(_ connection: BenchConnection) throws -> List {
        let master = try AbsoluteURL(entry)
        let outline = lines(try get(master, connection))
        guard let variant = outline.first(where: { !$0.hasPrefix("#") }) else { throw Fault.broken }
        let base = try master.resolving(String(variant))
        var list = List()
        var seconds = 0.0
        for line in lines(try get(base, connection)) {
            if line.hasPrefix("#EXTINF:") {
                seconds = Double(line.dropFirst(8).prefix { $0 != "," }) ?? 0
            } else if line.hasPrefix("#EXT-X-MAP:") || line.hasPrefix("#EXT-X-KEY:") {
                let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
                guard parts.count >= 3 else { throw Fault.broken }
                list.resources.append(try base.resolving(String(parts[1])))
            } else if !line.hasPrefix("#") {
                list.segments.append((try base.resolving(String(line)), seconds))
            }
        }
        guard !list.segments.isEmpty else { throw Fault.broken }
        return list
    }

    private func lines(_ fetch: BenchFetch) -> [Substring] {
        String(decoding: fetch.body, as: UTF8.self).split(separator: "\n")
    }
}
