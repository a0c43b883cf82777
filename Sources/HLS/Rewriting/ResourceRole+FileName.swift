package import URISyntax

/// File names for proxied URLs: ffmpeg, VLC and Kodi classify a resource by its extension.
extension ResourceRole {
    /// The longest result of `safeFileName` in bytes, extension included.
    package static let maximumFileNameLength = 64

    /// Returns a file name of letters, digits, `.`, `-` and `_` that ends in a fitting extension.
    ///
    /// The origin's extension is kept if it fits the role; `hasMap` is true if an EXT-X-MAP is in
    /// force, so that a segment without a fitting extension is fragmented MP4.
    ///
    /// Never empty, never longer than `maximumFileNameLength`, never with a leading dot. Escapes
    /// and other bytes become `_`; the name is for people and extension checks, not for decoding.
    package func safeFileName(for originName: String, hasMap: Bool = false) -> String {
        var output: [UInt8] = []
        let name = Array(originName.utf8)
        appendSafeFileName(for: name[...], hasMap: hasMap, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends the `safeFileName` of a URL's last path segment without building strings.
    package func appendSafeFileName(
        for url: AbsoluteURL, hasMap: Bool, to output: inout [UInt8]
    ) {
        appendSafeFileName(
            for: url.bytes[url.lastPathSegmentRange], hasMap: hasMap, to: &output)
    }

    /// Appends the `safeFileName` of a URL stored as folder and name; the name is in `document`.
    package func appendSafeFileName(
        for url: JoinedURL, in document: [UInt8], hasMap: Bool, to output: inout [UInt8]
    ) {
        if url.hasSafeName, isCommon(document.span.extracting(url.name)) {
            output.append(contentsOf: document[url.name])
        } else {
            appendSafeFileName(
                for: document[url.name], isSafe: url.hasSafeName, hasMap: hasMap, to: &output)
        }
    }

    /// Appends the extension of `safeFileName`, with its dot, for a URL's last path segment.
    package func appendExtension(for url: AbsoluteURL, hasMap: Bool, to output: inout [UInt8]) {
        appendExtension(for: url.bytes[url.lastPathSegmentRange], hasMap: hasMap, to: &output)
    }

    /// Appends the extension for a URL stored as folder and name; the name is in `document`.
    package func appendExtension(
        for url: JoinedURL, in document: [UInt8], hasMap: Bool, to output: inout [UInt8]
    ) {
        if url.hasSafeName, isCommon(document.span.extracting(url.name)) {
            let end = url.name.upperBound
            let dot = document[end - 3] == 0x2E ? end - 3 : end - 4
            for index in dot..<end { output.append(document[index]) }
        } else {
            appendExtension(for: document[url.name], hasMap: hasMap, to: &output)
        }
    }

    private func appendExtension(
        for name: ArraySlice<UInt8>, hasMap: Bool, to output: inout [UInt8]
    ) {
        guard let dot = fittingExtension(of: name) else {
            return output.append(contentsOf: suppliedExtension(hasMap).utf8)
        }
        for byte in name[dot...] { output.append(ASCII.lowercased(byte)) }
    }

    /// True if a name of safe bytes is a common segment name, which can be used unchanged.
    private func isCommon(_ span: Span<UInt8>) -> Bool {
        guard self == .segment || self == .part else { return false }
        let count = span.count
        guard count > 4, count <= Self.maximumFileNameLength, span[0] != 0x2E else { return false }
        // `.ts` or `.m4s`; other extensions are looked up.
        guard span[count - 1] == 0x73 else { return false }
        if span[count - 2] == 0x74 { return span[count - 3] == 0x2E }
        return span[count - 2] == 0x34 && span[count - 3] == 0x6D && span[count - 4] == 0x2E
    }

    private func appendSafeFileName(
        for name: ArraySlice<UInt8>, isSafe: Bool? = nil, hasMap: Bool, to output: inout [UInt8]
    ) {
        let dot = fittingExtension(of: name)
        let supplied = dot == nil ? suppliedExtension(hasMap) : ""
        if let dot, isSafe ?? Self.isSafe(name), Self.isWritable(name, dot: dot) {
            output.append(contentsOf: name)
            return
        }
        let extensionLength = dot.map { name.endIndex - $0 } ?? supplied.utf8.count
        let start = output.count
        var index = name.startIndex
        let end = dot ?? name.endIndex
        while index < end, output.count - start < Self.maximumFileNameLength - extensionLength {
            let byte = name[index]
            if byte != 0x2E || output.count > start {
                output.append(Self.isSafe(byte) ? byte : 0x5F)
            }
            index += byte == 0x25 && end - index > 2 ? 3 : 1
        }
        if output.count == start { output.append(contentsOf: suppliedStem.utf8) }
        if let dot {
            for byte in name[dot...] { output.append(ASCII.lowercased(byte)) }
        } else {
            output.append(contentsOf: supplied.utf8)
        }
    }

    /// Returns the role of an asset of an interstitial: most are playlists, and some players also
    /// take a file, which they know by its extension.
    static func ofAsset(_ url: AbsoluteURL) -> ResourceRole {
        media.accepts(extensionOf: url.bytes[url.lastPathSegmentRange]) ? .media : .playlist
    }

    /// True if a file name has an extension that fits this role.
    package func accepts(extensionOf name: ArraySlice<UInt8>) -> Bool {
        fittingExtension(of: name) != nil
    }

    /// Returns the index of the dot of an extension that fits this role, or nil.
    private func fittingExtension(of name: ArraySlice<UInt8>) -> Int? {
        guard let dot = name.lastIndex(of: 0x2E) else { return nil }
        guard let packed = Self.pack(name[(dot + 1)...]) else { return nil }
        return fittingExtensions.contains(packed) ? dot : nil
    }

    /// True if a name needs no replacement of bytes, which is the common case.
    private static func isSafe(_ name: ArraySlice<UInt8>) -> Bool {
        let span = name.span
        for index in span.indices where !isSafe(span[index]) { return false }
        return true
    }

    /// True if a name of safe bytes can be used unchanged: not too long, not hidden, its extension
    /// in lower case.
    private static func isWritable(_ name: ArraySlice<UInt8>, dot: Int) -> Bool {
        let span = name.span
        guard span.count <= maximumFileNameLength, span[0] != 0x2E else { return false }
        for index in dot - name.startIndex..<span.count where span[index] &- 0x41 < 26 {
            return false
        }
        return true
    }

    @inline(__always)
    private static func isSafe(_ byte: UInt8) -> Bool {
        // Letters, digits, `-`, `.` and `_` as bits: this runs for every byte of every name.
        let bits: UInt64 = byte & 0x40 == 0 ? 0x03FF_6000_0000_0000 : 0x07FF_FFFE_87FF_FFFE
        return byte < 0x80 && bits >> UInt64(byte & 0x3F) & 1 == 1
    }

    /// Packs up to eight bytes in lower case into one number, so that extensions compare in one
    /// step.
    private static func pack(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        guard bytes.count <= 8 else { return nil }
        return bytes.reduce(0) { $0 << 8 | UInt64(ASCII.lowercased($1)) }
    }

    private static func pack(_ extensions: [String]) -> [UInt64] {
        extensions.compactMap { pack(Array($0.utf8)[...]) }
    }

    /// The extensions that players accept for this role.
    private var fittingExtensions: [UInt64] {
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

    private static let playlistExtensions = pack(["m3u8", "m3u"])
    /// The most frequent first, since every segment of a playlist is looked up.
    private static let segmentExtensions = pack([
        "ts", "m4s", "mp4", "aac", "m4v", "m4a", "cmfv", "cmfa", "ac3", "ec3", "eac3", "mp3",
        "mp2", "mpg", "mpeg", "mpegts", "mov", "fmp4", "flac", "3gp", "vtt", "webvtt",
    ])
    private static let initializationExtensions = pack([
        "mp4", "m4s", "m4v", "m4a", "cmfv", "cmfa", "mov", "fmp4",
    ])
    private static let keyExtensions = pack(["key", "bin"])
    private static let subtitleExtensions = pack(["vtt", "webvtt", "m4s", "mp4"])
    private static let jsonExtensions = pack(["json"])
    private static let imageExtensions = pack(["jpg", "jpeg", "png", "webp", "gif"])
    private static let mediaExtensions =
        segmentExtensions + imageExtensions
        + pack(["mkv", "webm", "avi", "flv", "wav", "ogg", "ogv", "oga", "txt", "bin", "srt"])

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
