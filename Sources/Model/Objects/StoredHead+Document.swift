package import CachePolicy
import HTTP

extension StoredHead {
    /// Whether the origin says that this is a document or program, and no media: what a page of
    /// another site has no need to read.
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
