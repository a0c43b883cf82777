import CachePolicy
import HLS
import HTTP
import Model
import Store

/// The JSON texts of HLS, rewritten for the session: steering manifests, asset lists and their like.
extension OriginExchange {
    // MARK: JSON that was opened as an entry

    /// The longest JSON in bytes that is looked into where no playlist says what it is.
    private static let longestEntry: Int64 = 1 << 20

    /// Judges JSON that no playlist led to, by its type and its first bytes.
    ///
    /// Costs one look at the role for all that a playlist names.
    func judgeEntry(_ object: StoredObject, _ facts: ObjectFacts) -> EntryText {
        guard mayBeEntry(object, facts) else { return .other }
        if object.isComplete {
            if let known = facts.isTextOfHLS { return known ? .text : .other }
            let isText = Self.isText(object)
            facts.isTextOfHLS = isText
            return isText ? .text : .other
        }
        guard case .present(let count) = object.state(at: 0),
            let start = object.shortBytes(0..<min(count, 4_096)),
            JSONRewriter.mayBeDocumentOfHLS(start)
        else { return .other }
        return .open
    }

    private func mayBeEntry(_ object: StoredObject, _ facts: ObjectFacts) -> Bool {
        guard resource.role == nil, resource.kind == nil, facts.head.status == .ok,
            !facts.head.isPlaylist, object.total ?? 0 <= Self.longestEntry,
            // Nearly everything is media, and reading a media type costs more than this look.
            let value = facts.head.fields.valueBytes(.contentType),
            !value.starts(with: Self.video), !value.starts(with: Self.audio),
            let type = facts.head.fields.first(.contentType).flatMap(MediaType.init)
        else { return false }
        return type.subtype == "json" || type.subtype.hasSuffix("+json")
            || type.subtype == "vnd.apple.steering-list"
    }

    private static let video = Array("video/".utf8)
    private static let audio = Array("audio/".utf8)

    /// Whether JSON that was opened as an entry is too long to be judged on a loop, and was not yet.
    func mustBeJudged(_ object: StoredObject, _ facts: ObjectFacts) -> Bool {
        object.total ?? 0 >= TextWorker.longText && mayBeEntry(object, facts)
            && object.isComplete && facts.isTextOfHLS == nil
    }

    /// Judges such JSON elsewhere, then goes on.
    func judge(
        _ object: StoredObject, _ facts: ObjectFacts, then: @escaping () -> Void
    ) {
        makeElsewhere(.judgement, of: object, { facts.isTextOfHLS = Self.isText(object) }) { _, _ in
            then()
        }
    }

    private static func isText(_ object: StoredObject) -> Bool {
        let body = try? readBody(of: object, count: Int(object.total ?? 0))
        return body.map(JSONRewriter.isDocumentOfHLS) ?? false
    }

    /// What JSON that was opened as an entry is.
    enum EntryText {
        /// A text of HLS, which is rewritten.
        case text
        /// Perhaps one: the rest of the body tells.
        case open
        /// Passed on as it is.
        case other
    }

    /// Goes on with the entry as with JSON that a playlist names.
    func becomeText() { resource = resource.changing { $0.role = .json } }
}
