// A stored title as a folder of files with relative links, which any web server can serve.
import CachePolicy
import HLS
import HTTP
import Library
import Model
import Numbers
import Posix
import Routing
import Store
import URISyntax

/// Determines the files of the folder; the client fetches and writes them.
///
/// All files are in one folder: `index.m3u8`, a playlist for each stream, and the resources with a
/// number before their names. Resources that are not stored are left out of the playlists, at the
/// same times in each.
struct DownloadExport {
    /// A file of the folder.
    fileprivate struct File {
        let name: String
        /// The content, for playlists.
        var text: [UInt8]?
        /// The path on the daemon to fetch it from.
        var source = ""
        /// Its stored ranges, unless it is stored completely.
        var ranges: Set<Range<Int64>> = []
        var isWhole = false
    }

    /// A resource: what a URL names in one epoch.
    private struct Place: Hashable {
        let url: AbsoluteURL
        let epoch: Epoch
    }

    /// A media playlist that a multivariant one names.
    private struct Child {
        let url: AbsoluteURL
        let object: StoredObject
        let facts: ObjectFacts
    }

    /// The most playlists that are read; each is read whole.
    private static let mostLists = 256
    /// How many segments playlists may have together; further playlists are not read.
    private static let mostSegments = 2_000_000

    private let services: AheadServices
    private let session: Session
    private var files: [File] = []
    private var places: [Place: Int] = [:]
    private var lists: [AbsoluteURL: String] = [:]
    /// The key systems that prevent playback of the exported playlists.
    private var protection: ContentProtection?

    init(services: AheadServices, session: Session) {
        self.services = services
        self.session = session
    }

    /// Responds to `GET /api/export`; blocks on the disk.
    static func answer(
        _ query: String, services: AheadServices
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        guard let text = AdministrationQuery(query)["title"] else { throw .missing("title") }
        let catalogue = TitleCatalogue(
            store: services.store, sessions: services.sessions, keys: services.keys,
            limits: services.settings.playlistLimits)
        let administration = StoreAdministration(catalogue: catalogue) { services.titleStart($0) }
        let titles = try administration.find(text)
        guard let title = titles.first(where: { $0.entryKey != nil }), let key = title.entryKey
        else {
            throw AdministrationRefusal(
                .conflict,
                "only parts of the title are stored, not its entry; play or download it first")
        }
        var export = DownloadExport(
            services: services, session: services.sessions.session(title.id))
        return try export.answer(title, key)
    }

    private mutating func answer(
        _ title: Title, _ key: ObjectKey
    ) throws(AdministrationRefusal) -> AdministrationAnswer {
        guard let object = services.store.peek(key), let facts = ObjectFacts.of(object) else {
            throw AdministrationRefusal(.conflict, "the title's entry is not kept any more")
        }
        if facts.head.isPlaylist {
            let text = entry(object, facts)
            if let protection {
                throw AdministrationRefusal(
                    .conflict,
                    "the title is \(protection.text), so that no player could play the export")
            }
            guard let text else {
                throw AdministrationRefusal(
                    .conflict, "nothing that could be played is kept of the title; download it")
            }
            files.insert(File(name: "index.m3u8", text: text), at: 0)
        } else {
            guard object.isComplete, let url = title.url else {
                throw AdministrationRefusal(
                    .conflict, "the file is not kept whole; download it")
            }
            place(url, role: nil, in: nil, range: nil)
        }
        // The rules of keys may have changed since it was stored, or it was evicted meanwhile.
        guard let first = files.first else {
            throw AdministrationRefusal(
                .conflict, "the file is not kept under its present key; download it anew")
        }
        return .value(
            .ok,
            .object([
                .init("name", .text(title.name)), .init("entry", .text(first.name)),
                .init("files", .list(files.map(\.json))),
            ]))
    }

    // MARK: Lists

    private func read(_ object: StoredObject, _ facts: ObjectFacts) -> ([UInt8], AbsoluteURL)? {
        guard object.isComplete, let total = object.total,
            let base = try? AbsoluteURL(facts.head.finalURL),
            let body = try? readBody(of: object, count: Int(total))
        else { return nil }
        return (body, base)
    }

    /// Reads the playlist that a URL names.
    private func list(
        at url: AbsoluteURL
    ) -> (child: Child, body: [UInt8], base: AbsoluteURL)? {
        for key in services.keys.entryKeys(url, of: session) {
            if let object = services.store.peek(key), let facts = ObjectFacts.of(object),
                facts.head.isPlaylist, let (body, base) = read(object, facts)
            {
                return (Child(url: url, object: object, facts: facts), body, base)
            }
        }
        return nil
    }

    private mutating func entry(_ object: StoredObject, _ facts: ObjectFacts) -> [UInt8]? {
        guard let (body, base) = read(object, facts),
            let list = playlist(body, base, variables: [:])
        else { return nil }
        guard let multivariant = list.multivariant else {
            guard let kept = kept(list, base, facts) else { return nil }
            return media(list, base, missing: kept.missing, variables: [:])
        }
        let variables = list.definedVariables
        let (texts, plan) = media(of: multivariant, variables: variables)
        let filtered = MultivariantFilter.filter(list) { reference in
            reference.role == .playlist && texts[reference.url] != nil
        } movedStart: {
            plan.movedStart($0)
        }
        guard filtered.isPlayable else { return nil }
        var number = 0
        let linked = try? PlaylistRewriter.rewrite(filtered.bytes, base: base) {
            reference, output in
            guard let text = texts[reference.url] else { return false }
            if lists[reference.url] == nil {
                number += 1
                lists[reference.url] = "list-\(number).m3u8"
                files.append(File(name: "list-\(number).m3u8", text: text))
            }
            output += Array((lists[reference.url] ?? "").utf8)
            return true
        }
        dropUnnamed()
        return linked?.bytes
    }

    /// Removes files that only playlists left out by the filter have added.
    private mutating func dropUnnamed() {
        let texts = files.compactMap(\.text)
        let named = Set(texts.flatMap(Self.names))
        files.removeAll { $0.text == nil && !named.contains($0.name) }
    }

    /// Returns every word of a playlist that may be a file name.
    private static func names(_ text: [UInt8]) -> [String] {
        text.split(whereSeparator: { $0 == 0x0A || $0 == 0x22 }).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    private func playlist(
        _ body: [UInt8], _ base: AbsoluteURL, variables: [String: String]
    ) -> Playlist? {
        var reading = reading(variables)
        reading.keepsLines = true
        return try? Playlist(body, base: base, reading)
    }

    private func reading(_ variables: [String: String]) -> PlaylistReading {
        let limits = session.limits(ofOrigins: services.settings.playlistLimits)
        return PlaylistReading(limits: limits, variables: variables)
    }

    /// Returns the exported text of each media playlist of a title, by the URL that names it, and
    /// the plan that they follow.
    private mutating func media(
        of title: MultivariantPlaylist, variables: [String: String]
    ) -> (texts: [AbsoluteURL: [UInt8]], plan: ExportPlan) {
        let urls =
            title.streams.compactMap { $0.reference?.url }
            + title.renditions.compactMap { $0.reference?.url }
        var children: [Child] = []
        var lists: [AbsoluteURL: OfflineList] = [:]
        var tried: Set<AbsoluteURL> = []
        var (readCount, segmentCount) = (0, 0)
        for url in urls where readCount < Self.mostLists && segmentCount < Self.mostSegments {
            guard tried.insert(url).inserted, let found = self.list(at: url) else {
                continue
            }
            readCount += 1
            guard let list = playlist(found.body, found.base, variables: variables) else {
                continue
            }
            segmentCount += list.summary.segmentCount
            guard let kept = kept(list, found.base, found.child.facts) else { continue }
            children.append(found.child)
            lists[url] = kept
        }
        let plan = ExportPlan(
            variants(of: title), lists: lists, subtitles: MultivariantFilter.subtitles(title))
        var texts: [AbsoluteURL: [UInt8]] = [:]
        for child in children where plan.lists(child.url) {
            // Parsed again, since all of them at once may be large.
            guard let (body, base) = read(child.object, child.facts),
                let list = playlist(body, base, variables: variables)
            else { continue }
            texts[child.url] = media(
                list, base, missing: plan.missing(at: child.url),
                borrowed: plan.borrowed(at: child.url), pieces: plan.pieces(at: child.url),
                variables: variables)
        }
        return (texts, plan)
    }

    /// Returns the variant streams of a title; those of a recording replace no segments of each
    /// other, since the epoch of a name is known for its own list only.
    private func variants(of title: MultivariantPlaylist) -> [OfflinePlan.Variant] {
        let variants = MultivariantFilter.variants(title)
        guard isRecording else { return variants }
        return variants.map {
            OfflinePlan.Variant(
                url: $0.url, sound: $0.sound, soundGroup: $0.soundGroup, encodingGroup: nil,
                isSoundOnly: $0.isSoundOnly)
        }
    }

    private var isRecording: Bool { session.shift.recording != nil }

    /// Returns the stored segments of a media playlist; nil if there are none.
    private mutating func kept(
        _ list: Playlist, _ base: AbsoluteURL, _ facts: ObjectFacts
    ) -> OfflineList? {
        guard let media = list.media, !list.summary.isSkipDelta else { return nil }
        if let found = ContentProtection.read(media).protection {
            if protection?.add(found) == nil { protection = found }
            return nil
        }
        let (services, session) = (services, session)
        let epochs = RecordedEpochs(of: list, at: base, services, session)
        // The lists of a recording share the numbers of their stream.
        let kept = OfflineList(
            list, wasLive: facts.head.wasLive || isRecording,
            received: Double(facts.head.responseTime.nanoseconds) / 1e9
        ) { reference in
            let epoch = epochs?.epoch(of: reference, for: reference.mediaSequence)
            return Self.isStored(reference, in: epoch, services, session)
        }
        return kept.keptCount > 0 ? kept : nil
    }

    /// Returns a media playlist with links into the folder; nil if it cannot be written.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - base: the URL that it came from.
    ///   - missing: the lines of the segments that are left out.
    ///   - borrowed: replacements for other segments, by line.
    ///   - pieces: what is played of segments that are not listed as they are, by line.
    ///   - variables: the variables of the multivariant playlist.
    /// - Returns: the text.
    private mutating func media(
        _ list: Playlist, _ base: AbsoluteURL, missing: Set<Int>,
        borrowed: [Int: AbsoluteURL] = [:], pieces: [Int: [SegmentPiece]] = [:],
        variables: [String: String]
    ) -> [UInt8]? {
        let epochs = RecordedEpochs(of: list, at: base, services, session)
        // The resources of interstitials are not in the folder, and a stored asset list names
        // playlists that are not.
        let made = OfflinePlaylist.cut(
            list, missing: missing, borrowed: borrowed, pieces: pieces,
            omitting: list.media.map(OfflinePlaylist.interstitialLines) ?? [])
        // Behind missing segments, and repeated ones, others would get other numbers than in the
        // list.
        let numbers = epochs == nil ? [] : Self.numbers(in: list, without: missing, pieces)
        var passed = 0
        let options = PlaylistRewriter.Options(reading(variables))
        let linked = try? PlaylistRewriter.rewrite(made.bytes, base: base, options: options) {
            reference, output in
            let number =
                numbers.indices.contains(passed) ? numbers[passed] : reference.mediaSequence
            if reference.tag == .inf { passed += 1 }
            let epoch = epochs?.epoch(of: reference, for: number)
            let range = reference.byteRange?.bytes
            guard let name = place(reference.url, role: reference.role, in: epoch, range: range)
            else { return false }
            output += Array(name.utf8)
            return true
        }
        return linked?.bytes
    }

    /// Returns the numbers of the segments of a list but for those that are missing, once for each
    /// of their pieces.
    private static func numbers(
        in list: Playlist, without missing: Set<Int>, _ pieces: [Int: [SegmentPiece]]
    ) -> [Int] {
        let segments = list.media?.segments.compactMap(\.reference) ?? []
        return segments.filter { !missing.contains($0.line) }.flatMap { segment in
            [Int](repeating: segment.mediaSequence, count: pieces[segment.line]?.count ?? 1)
        }
    }

    private static func isStored(
        _ reference: ResourceReference, in epoch: Epoch?, _ services: AheadServices,
        _ session: Session
    ) -> Bool {
        let key = Self.key(of: reference.url, role: reference.role, in: epoch, services, session)
        guard let object = services.store.peek(ObjectKey(key)) else { return false }
        guard let range = reference.byteRange else { return object.isComplete }
        return object.spans.holds(range.bytes, ofTotal: object.total)
    }

    // MARK: Resources

    /// Returns the key that a resource is stored under; without an epoch, in the current one of its
    /// name.
    private static func key(
        of url: AbsoluteURL, role: ResourceRole?, in epoch: Epoch?, _ services: AheadServices,
        _ session: Session
    ) -> CacheKey {
        var key = services.names.resource(url, session, role: role, forwarding: Fields()).cacheKey
        if let epoch { key.epoch = epoch }
        let stored = services.store.peek(ObjectKey(key))
        if let stored, stored.isComplete { return key }
        let former = services.keys.former(
            key, of: url, session, role: role, in: services.store,
            live: epoch == nil ? services.names.live : nil
        ) { stored == nil || $0.isComplete }
        return former?.key ?? key
    }

    /// Returns the name of a resource's file; nil if it is not stored.
    ///
    /// - Parameters:
    ///   - url: its URL.
    ///   - role: its role; nil for an entry.
    ///   - epoch: the epoch of its name; nil for the current one.
    ///   - range: the bytes that are needed of it; nil for all.
    /// - Returns: the name of its file in the export; nil if there is none.
    @discardableResult
    private mutating func place(
        _ url: AbsoluteURL, role: ResourceRole?, in epoch: Epoch?, range: Range<Int64>?
    ) -> String? {
        let key = Self.key(of: url, role: role, in: epoch, services, session)
        let place = Place(url: url, epoch: key.epoch)
        if let known = places[place] {
            if let range { files[known].ranges.insert(range) }
            return files[known].name
        }
        guard let object = services.store.peek(ObjectKey(key)) else { return nil }
        let number = String(places.count + 1, width: 5)
        let shown = role ?? .media
        var file = File(name: "\(number)-\(shown.safeFileName(for: url.lastPathSegment))")
        file.isWhole = object.isComplete
        if let range { file.ranges.insert(range) }
        let seal = services.sessions.sealed(session).seal
        let links = LinkWriter(
            session: session.id, prefix: "", signer: seal?.signer ?? services.signer,
            userSigner: services.keys.mountUsers.signer(of: url),
            handle: services.names.handle(for:session:epoch:))
        let letter = String(UnicodeScalar(shown.letter))
        let handle = String(
            decoding: links.handleText(of: url, for: .link(shown), in: key.epoch), as: UTF8.self)
        file.source =
            "\(seal?.path ?? "")/\(letter)/\(handle)/\(shown.safeFileName(for: url.lastPathSegment))"
        places[place] = files.count
        files.append(file)
        return file.name
    }
}

/// The epochs of the names in a playlist of an ended recording.
private struct RecordedEpochs {
    /// The saved window; nil if all names are of the first epoch, since no window is kept then.
    private let window: TimeShift?

    /// Reads the window of a list; blocks on the disk.
    ///
    /// Nil for all other playlists: names in the window of a stream are those of the current epoch.
    init?(
        of list: Playlist, at url: AbsoluteURL, _ services: AheadServices, _ session: Session
    ) {
        guard session.shift.recording != nil, list.summary.playlistType == .vod,
            list.summary.hasEndList
        else { return nil }
        window = TimeShiftFiles.recorded(
            WindowName(session: session.id, url: url), in: services.store.folderPath,
            limits: session.shift.limits)
    }

    /// Returns the epoch of a name for the segment of a number.
    func epoch(of reference: ResourceReference, for number: Int) -> Epoch {
        window?.nameEpoch(of: reference, for: number) ?? .first
    }
}

extension DownloadExport.File {
    fileprivate var json: JSONValue {
        .object([
            .init("name", .text(name)),
            .init("text", text.map { .text(String(decoding: $0, as: UTF8.self)) } ?? .null),
            .init("source", .text(source)),
            .init(
                "ranges",
                .list(
                    isWhole
                        ? []
                        : ranges.sorted { $0.lowerBound < $1.lowerBound }.map {
                            .list([.number($0.lowerBound), .number($0.upperBound)])
                        })),
        ])
    }
}
