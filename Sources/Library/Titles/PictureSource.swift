// The stored bytes that a picture of a title is made of.
import CachePolicy
import HLS
import Model
import Numbers
import Posix
import Routing
import Store
import URISyntax

/// An initialization section, if there is one, and the beginning of the first stored segment.
struct PictureSource: Sendable {
    let name: PictureSourceName
    let bytes: [UInt8]
}

extension TitleCatalogue {
    /// Reads what pictures of a title can be made of; blocks on the disk.
    ///
    /// - Returns: candidates from different variants, without encrypted ones, the cheapest to
    ///   decode first; nil if no such title is stored.
    func pictureSources(of id: SessionID, most: Int) -> [PictureSource]? {
        let rows = store.rows(ofTitle: id.number)
        let pin = store.pin(of: id.number)
        guard !rows.isEmpty || pin != nil else { return nil }
        var reading = TitleReading(self, sessions.session(id), rows)
        return reading.pictureSources(
            entry: pin.flatMap { try? AbsoluteURL($0.url) }, most: most)
    }
}

extension TitleReading {
    /// The most candidates: a variant may have audio only, or a codec that ffmpeg lacks.
    private static let mostCandidates = 3
    /// The most segments of a playlist that are looked up.
    private static let mostSegments = 20_000

    /// One segment with what decoding it needs.
    private struct Segment {
        let key: ObjectKey
        let range: Range<Int64>?
        let initialization: (key: ObjectKey, range: Range<Int64>?)?
    }

    fileprivate mutating func pictureSources(
        entry: AbsoluteURL?, most: Int
    ) -> [PictureSource] {
        guard let root = entry.flatMap({ self.root(at: $0) }) ?? self.root(among: rows) else {
            return []
        }
        guard root.head.isPlaylist else {
            return file(root.object, most).map { bytes in
                [PictureSource(name: name(root.object, root.key, nil), bytes: bytes)]
            } ?? []
        }
        guard let list = playlist(root.object, root.head, variables: [:]) else { return [] }
        guard let multivariant = list.multivariant else {
            return source(in: list, at: (root.key, root.head.finalURL), most).map { [$0] } ?? []
        }
        let variants = multivariant.variants.filter { $0.kind == .stream && $0.reference != nil }
            .prefix(Self.mostLists)
            .sorted { ($0.bandwidth ?? 0) < ($1.bandwidth ?? 0) }
        var found: [PictureSource] = []
        for variant in variants where found.count < Self.mostCandidates {
            guard let url = variant.reference?.url,
                let (media, place) = playlist(at: url, variables: list.definedVariables),
                let source = source(in: media, at: place, most)
            else { continue }
            found.append(source)
        }
        return found
    }

    /// Returns the beginning of a media file, in the order in which a decoder can read it once.
    private func file(_ object: StoredObject, _ most: Int) -> [UInt8]? {
        let movie = object.total.flatMap { total in
            StreamableMovie(total: total, most: most) { read(object, $0, $0.count) }
        }
        return movie?.bytes ?? read(object, nil, most)
    }

    /// Where a playlist is stored, and the text of the URL that it came from.
    private typealias Place = (key: ObjectKey, base: String)

    /// Returns a stored playlist and its place.
    private func playlist(
        at url: AbsoluteURL, variables: [String: String]
    ) -> (list: Playlist, place: Place)? {
        for key in catalogue.keys.entryKeys(url, of: session) {
            if let object = catalogue.store.peek(key), let head = StoredHead(encoded: object.head),
                head.isPlaylist, let list = playlist(object, head, variables: variables)
            {
                return (list, (key, head.finalURL))
            }
        }
        return nil
    }

    /// Returns the first stored segment of a media playlist; nil without one, or if the playlist
    /// has any key.
    ///
    /// Names that the stream of an ended recording has used again mean what they did at that time,
    /// those of other lists what they do now.
    private mutating func source(
        in list: Playlist, at place: Place, _ most: Int
    ) -> PictureSource? {
        guard let media = list.media, media.keys.allSatisfy(\.isNone) else { return nil }
        let isEnded = list.summary.playlistType == .vod && list.summary.hasEndList
        let window = isEnded ? recordedWindow(at: place.base) : nil
        let current = window == nil ? catalogue.currentEpochs(place.key) : [:]
        let keys = catalogue.keys
        func key(_ reference: ResourceReference) -> ObjectKey {
            let epoch =
                window?.nameEpoch(of: reference, for: reference.mediaSequence)
                ?? current[reference.url]
            return keys.mediaKey(reference.url, in: epoch ?? .first)
        }
        var segments: [Segment] = []
        var initialization: (key: ObjectKey, range: Range<Int64>?)?
        list.forEachReference { reference in
            switch reference.role {
            case .initialization where reference.tag != .preloadHint:
                initialization = (key(reference), reference.byteRange?.bytes)
            case .segment, .media:
                guard reference.tag == .inf, !reference.isGap, segments.count < Self.mostSegments
                else { return }
                segments.append(
                    Segment(
                        key: key(reference), range: reference.byteRange?.bytes,
                        initialization: initialization))
            default: break
            }
        }
        note(Array(Set(segments.map(\.key))))
        for segment in segments {
            guard row(segment.key) != nil,
                let object = catalogue.store.peek(segment.key)
            else { continue }
            var bytes: [UInt8] = []
            if let initialization = segment.initialization {
                guard let object = catalogue.store.peek(initialization.key),
                    let read = read(object, initialization.range, most)
                else { continue }
                bytes = read
            }
            guard let read = read(object, segment.range, most - bytes.count) else { continue }
            return PictureSource(
                name: name(object, segment.key, segment.range), bytes: bytes + read)
        }
        return nil
    }

    private func name(
        _ object: StoredObject, _ key: ObjectKey, _ range: Range<Int64>?
    ) -> PictureSourceName {
        PictureSourceName(
            key: key, generation: object.generation, start: range?.lowerBound ?? 0)
    }

    /// Returns the first bytes of a range, or of the whole resource; nil unless they are stored.
    private func read(_ object: StoredObject, _ range: Range<Int64>?, _ most: Int) -> [UInt8]? {
        guard most > 0, let range = range ?? object.total.map({ 0..<$0 }), !range.isEmpty,
            range.lowerBound >= 0
        else { return nil }
        let count = min(Int64(most), range.upperBound.subtractingSaturated(range.lowerBound))
        let wanted = range.lowerBound..<range.lowerBound.addingSaturated(count)
        guard object.isComplete || object.spans.holes(in: wanted).isEmpty,
            let bytes = try? object.readBody(from: wanted.lowerBound, count: Int(count)),
            bytes.count == Int(count),
            // No reader is registered for these bytes: they may have been freed meanwhile.
            object.spans.contains(wanted)
        else { return nil }
        return bytes
    }
}
