package import CachePolicy
import HTTP

extension StoredHead {
    /// True if the origin calls this a document or program rather than media: pages of other sites
    /// have no need to read it.
    ///
    /// Readers differ in which of several types they take, so any of them counts.
    package var isDocument: Bool {
        fields.listMembers(.contentType).contains { MediaType($0).map(Self.namesDocument) ?? false }
    }

    private static func namesDocument(_ type: MediaType) -> Bool {
        if documents.contains(type.essence) { return true }
        return ["+json", "+xml"].contains { type.subtype.hasSuffix($0) }
            && !media.contains(type.essence)
    }

    private static let documents: Set<String> = [
        "text/html", "text/xml", "text/xsl", "application/xml", "application/json",
        "application/x-json", "text/json", "text/css", "text/javascript", "application/javascript",
        "application/x-javascript", "application/pdf",
    ]

    /// Subtitles and manifests, which players in pages read although their suffix is `+xml`.
    private static let media: Set<String> = ["application/ttml+xml", "application/dash+xml"]
}
