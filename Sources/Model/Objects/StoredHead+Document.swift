package import CachePolicy
import HTTP

extension StoredHead {
    /// True if the origin calls this a document or program rather than media: pages of other sites
    /// have no need to read it.
    package var isDocument: Bool {
        guard let type = fields.first(.contentType).flatMap(MediaType.init) else { return false }
        return Self.documents.contains("\(type.type)/\(type.subtype)")
    }

    private static let documents: Set<String> = [
        "text/html", "application/xhtml+xml", "text/xml", "application/xml", "application/json",
        "text/json", "text/css", "text/javascript", "application/javascript",
        "application/x-javascript", "application/pdf", "image/svg+xml",
    ]
}
