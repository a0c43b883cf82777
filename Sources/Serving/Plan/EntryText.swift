import CachePolicy
import HLS
import HTTP
import Model
import Store

/// JSON that was not named by a playlist, classified by its type and content: steering manifests,
/// asset lists and the like are rewritten for the session.
extension Resource {
    /// The longest JSON, in bytes, that is examined when no playlist tells its role.
    private static let longestEntry: Int64 = 1 << 20

    /// Returns the class of a stored object, nil if its bytes cannot be read; reads them, which
    /// blocks, unless the class is known.
    func entryText(_ object: StoredObject, _ facts: ObjectFacts) -> RequestFacts.EntryText? {
        guard mayBeEntry(object, facts) else { return .other }
        if object.isComplete {
            guard facts.isTextOfHLS != nil || learnText(object, facts) else { return nil }
            return facts.isTextOfHLS == true ? .text : .other
        }
        guard case .present(let count) = object.state(at: 0) else { return .other }
        // Bytes that the disk cannot read may be JSON: the object is examined again when it is
        // whole.
        guard let start = object.shortBytes(0..<min(count, 4_096)) else { return .open }
        return JSONRewriter.mayBeDocumentOfHLS(start) ? .open : .other
    }

    private func mayBeEntry(_ object: StoredObject, _ facts: ObjectFacts) -> Bool {
        guard role == nil, !followsHTTP, facts.head.status == .ok,
            !facts.head.isPlaylist, object.total ?? 0 <= Self.longestEntry,
            // Nearly everything is media, and parsing a media type costs more than this check.
            let value = facts.head.fields.valueBytes(.contentType),
            !value.starts(with: Self.video), !value.starts(with: Self.audio),
            let type = facts.head.fields.first(.contentType).flatMap(MediaType.init)
        else { return false }
        return type.subtype == "json" || type.subtype.hasSuffix("+json")
            || type.subtype == "vnd.apple.steering-list"
    }

    private static let video = Array("video/".utf8)
    private static let audio = Array("audio/".utf8)

    /// True if an object is too long to be examined on a loop, and was not examined yet.
    func mustBeJudged(_ object: StoredObject, _ facts: ObjectFacts) -> Bool {
        object.total ?? 0 >= TextWorker.longText && mayBeEntry(object, facts)
            && object.isComplete && facts.isTextOfHLS == nil
    }

    /// Learns whether the whole body is an HLS JSON text; false if the disk cannot read it.
    func learnText(_ object: StoredObject, _ facts: ObjectFacts) -> Bool {
        guard let body = try? readBody(of: object, count: Int(object.total ?? 0)) else {
            return false
        }
        facts.isTextOfHLS = JSONRewriter.isDocumentOfHLS(body)
        return true
    }
}
