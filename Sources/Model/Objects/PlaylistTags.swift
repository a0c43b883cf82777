/// Looks for tags in texts that need not be parsed.
enum PlaylistTags {
    /// True if a text has a tag; searched from the end, where EXT-X-ENDLIST is.
    static func contains(_ tag: String, in text: [UInt8]) -> Bool {
        let tag = Array(tag.utf8)
        var end = text.count
        while let hash = text[..<end].lastIndex(of: 0x23) {
            if text[hash...].starts(with: tag) { return true }
            end = hash
        }
        return false
    }
}
