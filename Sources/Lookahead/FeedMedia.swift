// The kind of a feed item, by its name, declared type and first bytes.

/// The kind of media of an item.
package enum FeedMedia: String, Sendable {
    case picture
    /// Video or audio.
    case video

    /// The number of bytes of a body that suffice to detect the kind.
    package static let prefixLength = 32

    /// Returns the kind for a lower-case file name extension; nil if unknown.
    package static func named(_ nameExtension: String) -> FeedMedia? {
        switch nameExtension {
        case "jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "heif", "bmp", "svg", "jxl",
            "tif", "tiff":
            .picture
        case "mp4", "m4v", "mov", "webm", "mkv", "ts", "m4s", "cmfv", "cmfa", "mp3", "m4a", "aac",
            "ogg", "ogv", "opus", "flac", "wav", "avi", "3gp":
            .video
        default: nil
        }
    }

    /// Returns the kind of a body that is not a playlist; nil if it is not media.
    ///
    /// - Parameters:
    ///   - contentType: as declared by the origin; empty for none.
    ///   - prefix: the first bytes, which take precedence over the type.
    /// - Returns: the kind.
    package static func of(contentType: String, prefix: [UInt8]) -> FeedMedia? {
        if let seen = seen(in: prefix) { return seen }
        let type = contentType.lowercased().prefix { $0 != ";" && $0 != " " }
        if type.hasPrefix("image/") { return .picture }
        if type.hasPrefix("video/") || type.hasPrefix("audio/") { return .video }
        switch type {
        // Generic types, declared for anything; text is excluded.
        case "", "application/octet-stream", "binary/octet-stream", "application/mp4",
            "application/x-mp4", "application/ogg":
            return isText(prefix) ? nil : .video
        default: return nil
        }
    }

    private static func seen(in prefix: [UInt8]) -> FeedMedia? {
        func has(_ text: String, at offset: Int = 0) -> Bool {
            prefix.dropFirst(offset).starts(with: text.utf8)
        }
        if prefix.starts(with: [0xFF, 0xD8, 0xFF]) || prefix.starts(with: [0x89, 0x50, 0x4E, 0x47])
            || has("GIF8") || (has("RIFF") && has("WEBP", at: 8))
            || has("BM") && prefix.count > 14
                && prefix[6...9].allSatisfy({ $0 == 0 })
        {
            return .picture
        }
        if has("ftyp", at: 4) {
            let pictures = ["avif", "avis", "heic", "heix", "mif1", "msf1"]
            return pictures.contains { has($0, at: 8) } ? .picture : .video
        }
        if prefix.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) || has("ID3") || has("OggS")
            || has("fLaC") || has("RIFF")
        {
            return .video
        }
        return nil
    }

    /// True if bytes look like text: markup, JSON, a message.
    private static func isText(_ prefix: [UInt8]) -> Bool {
        !prefix.isEmpty
            && prefix.allSatisfy { $0 >= 0x20 && $0 < 0x7F || [0x09, 0x0A, 0x0D].contains($0) }
    }
}
