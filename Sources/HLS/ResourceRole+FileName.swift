package import URISyntax

/// File names for proxied URLs: ffmpeg, VLC and Kodi judge a resource by its extension.
extension ResourceRole {
    /// The longest file name that `safeFileName` gives, extension included, in bytes.
    package static let maximumFileNameLength = 64

    /// The extension, with its dot and in lower case, that a resource of this role shows.
    ///
    /// The origin's own one is kept where it fits the role; `hasMap` says that an EXT-X-MAP is in
    /// force, so that a segment without a fitting extension is fragmented MP4.
    package func fileExtension(for originName: String, hasMap: Bool = false) -> String {
        let name = Array(originName.utf8)
        guard let dot = fittingExtension(of: name[...]) else { return suppliedExtension(hasMap) }
        return String(decoding: name[dot...].map(ASCII.lowercased), as: UTF8.self)
    }

    /// A file name of letters, digits, `.`, `-` and `_` that ends in a fitting extension.
    ///
    /// Never empty, never longer than `maximumFileNameLength`, never with a leading dot. Escapes
    /// and other bytes become `_`; the name is for eyes and extension checks, not for decoding.
    package func safeFileName(for originName: String, hasMap: Bool = false) -> String {
        var output: [UInt8] = []
        let name = Array(originName.utf8)
        appendSafeFileName(for: name[...], hasMap: hasMap, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends what `safeFileName` gives for a URL's last path segment, without making strings.
    package func appendSafeFileName(
        for url: AbsoluteURL, hasMap: Bool, to output: inout [UInt8]
    ) {
        appendSafeFileName(
            for: url.bytes[url.lastPathSegmentRange], hasMap: hasMap, to: &output)
    }

    private func appendSafeFileName(
        for name: ArraySlice<UInt8>, hasMap: Bool, to output: inout [UInt8]
    ) {
        let dot = fittingExtension(of: name)
        let supplied = dot == nil ? suppliedExtension(hasMap) : ""
        let extensionLength = dot.map { name.endIndex - $0 } ?? supplied.utf8.count
        let start = output.count
        var index = name.startIndex
        let end = dot ?? name.endIndex
        while index < end, output.count - start < Self.maximumFileNameLength - extensionLength {
            let byte = name[index]
            let isSafe =
                ASCII.isAlphanumeric(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
            if byte != 0x2E || output.count > start { output.append(isSafe ? byte : 0x5F) }
            index += byte == 0x25 && end - index > 2 ? 3 : 1
        }
        if output.count == start { output.append(contentsOf: suppliedStem.utf8) }
        if let dot {
            for byte in name[dot...] { output.append(ASCII.lowercased(byte)) }
        } else {
            output.append(contentsOf: supplied.utf8)
        }
    }

    /// The index of the dot of an extension that fits this role, or nil.
    private func fittingExtension(of name: ArraySlice<UInt8>) -> Int? {
        guard let dot = name.lastIndex(of: 0x2E) else { return nil }
        let given = name[(dot + 1)...]
        let fits = fittingExtensions.contains { candidate in
            candidate.utf8.count == given.count
                && zip(candidate.utf8, given).allSatisfy { $0 == ASCII.lowercased($1) }
        }
        return fits ? dot : nil
    }

    /// The extensions that players accept for this role.
    private var fittingExtensions: [String] {
        switch self {
        case .playlist: Self.playlistExtensions
        case .segment, .part: Self.segmentExtensions
        case .initialization: Self.initializationExtensions
        case .key: Self.keyExtensions
        case .subtitle: Self.subtitleExtensions
        case .json: Self.jsonExtensions
        case .image: Self.imageExtensions
        case .media: Self.mediaExtensions
        }
    }

    private static let playlistExtensions = ["m3u8", "m3u"]
    /// The most frequent first, since each segment of a playlist is looked up.
    private static let segmentExtensions = [
        "ts", "m4s", "mp4", "aac", "m4v", "m4a", "cmfv", "cmfa", "ac3", "ec3", "eac3", "mp3",
        "mp2", "mpg", "mpeg", "mpegts", "mov", "fmp4", "flac", "3gp", "vtt", "webvtt",
    ]
    private static let initializationExtensions = [
        "mp4", "m4s", "m4v", "m4a", "cmfv", "cmfa", "mov", "fmp4",
    ]
    private static let keyExtensions = ["key", "bin"]
    private static let subtitleExtensions = ["vtt", "webvtt", "m4s", "mp4"]
    private static let jsonExtensions = ["json"]
    private static let imageExtensions = ["jpg", "jpeg", "png", "webp", "gif"]
    private static let mediaExtensions =
        segmentExtensions + imageExtensions + [
            "mkv", "webm", "avi", "flv", "wav", "ogg", "ogv", "oga", "txt", "json", "bin", "srt",
        ]

    private func suppliedExtension(_ hasMap: Bool) -> String {
        switch self {
        case .playlist: ".m3u8"
        case .segment, .part: hasMap ? ".m4s" : ".ts"
        case .initialization: ".mp4"
        case .key: ".key"
        case .subtitle: hasMap ? ".m4s" : ".vtt"
        case .json: ".json"
        case .image: ".jpg"
        case .media: ".ts"
        }
    }

    private var suppliedStem: String {
        switch self {
        case .playlist: "index"
        case .segment: "segment"
        case .part: "part"
        case .initialization: "init"
        case .key: "key"
        case .subtitle: "subtitle"
        case .json: "data"
        case .image: "image"
        case .media: "media"
        }
    }
}
