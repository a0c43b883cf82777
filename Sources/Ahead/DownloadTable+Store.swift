import CachePolicy
import DurableState
import HLS
import HTTP
import Library
import Logging
import Model
import Routing
import Store
import URISyntax

/// What downloads ask of the store: what is there, and that it stays.
extension DownloadTable {
    /// Keeps the title from eviction, what will come of it too.
    func pin(_ download: Download) {
        do throws(StateFault) {
            try services.store.pin(
                title: download.id.number, url: download.order.url.normalisedForKey, keys: [])
        } catch {
            download.fail("the title cannot be pinned: \(error)")
        }
    }

    /// What is there of the pieces that are under way.
    struct PartsUnderWay {
        var bytes: Int64 = 0
        /// Of these, what was not there when they were asked for.
        var brought: Int64 = 0
        /// How many whole pieces they make.
        var share = 0.0
    }

    func partsUnderWay(of download: Download) -> PartsUnderWay {
        var parts = PartsUnderWay()
        for index in download.running.keys where download.plan.pieces.indices.contains(index) {
            let (bytes, length) = present(index, of: download)
            parts.bytes += bytes
            parts.brought += max(0, bytes - (download.presentBefore[index] ?? 0))
            if let length, length > 0 { parts.share += Double(bytes) / Double(length) }
        }
        return parts
    }

    /// The bytes that are there of a piece from its start on, and its length where that is known.
    func present(_ index: Int, of download: Download) -> (bytes: Int64, length: Int64?) {
        let piece = download.plan.pieces[index]
        let resource = services.names.resource(
            piece.url, download.session, role: piece.role, forwarding: Fields())
        guard let object = services.store.peek(resource.key), !object.isDiscarded else {
            return (0, piece.range.map { Int64($0.count) })
        }
        let start = piece.range?.lowerBound ?? 0
        let end = [piece.range?.upperBound, object.total].compactMap { $0 }.min()
        let reached = object.spans.contiguousEnd(from: start)
        return (max(0, min(reached, end ?? reached) - start), end.map { max(0, $0 - start) })
    }

    /// Whether what is stored of the entry is a playlist; blocks on the disk.
    func holdsPlaylist(_ download: Download) -> Bool {
        let url = download.order.url
        return services.keys.entryKeys(url, of: download.session).contains { key in
            guard let object = services.store.peek(key), !object.isDiscarded,
                let facts = ObjectFacts.of(object)
            else { return false }
            if facts.head.isPlaylist { return true }
            // An answer to a range request was not looked at when it came.
            let count = Int(
                min(object.spans.contiguousEnd(from: 0), Int64(PlaylistDetector.prefixLength)))
            return (try? readBody(of: object, count: count)).map(
                PlaylistDetector.looksLikePlaylist) ?? false
        }
    }

    /// The pieces that are not in the store, or not whole; blocks on the disk.
    func missing(in download: Download) -> [Int] {
        download.plan.pieces.indices.filter { index in
            let piece = download.plan.pieces[index]
            let resource = services.names.resource(
                piece.url, download.session, role: piece.role, forwarding: Fields())
            guard let object = services.store.peek(resource.key), !object.isDiscarded else {
                return true
            }
            if object.isComplete { return false }
            guard let range = piece.range else { return true }
            let end = min(range.upperBound, object.total ?? range.upperBound)
            return !object.spans.contains(range.lowerBound..<end)
        }
    }

    /// Pins what the title shares with others as well, now that it is known.
    func finished(_ download: Download) {
        let keys = download.plan.pieces.map { piece in
            services.names.resource(
                piece.url, download.session, role: piece.role, forwarding: Fields()
            )
            .key
        }
        do throws(StateFault) {
            try services.store.pin(
                title: download.id.number, url: download.order.url.normalisedForKey,
                keys: Array(Set(keys + download.playlists)))
        } catch {
            download.fail("the title cannot be pinned: \(error)")
        }
        services.store.makeCertain()
        services.log.notice(
            "a download is complete",
            metadata: [
                "title": "\(download.id.text)", "pieces": "\(download.plan.pieces.count)",
                "bytes": "\(download.kept.bytes)",
            ])
    }
}
