/// What identifies the stored representation that a conditional request is compared with.
package struct Validators: Sendable, Hashable {
    /// The entity tag; nil where the origin gave none.
    package var etag: EntityTag?
    /// `Last-Modified` in seconds since 1970; nil where the origin gave none.
    package var lastModified: Int64?
    /// `Date` of the response that `lastModified` came with, in seconds since 1970: without it a
    /// modification date cannot be shown to be strong.
    package var date: Int64?

    package init(etag: EntityTag? = nil, lastModified: Int64? = nil, date: Int64? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.date = date
    }

    /// The validators of a response.
    package init(_ fields: Fields) {
        etag = EntityTag.parse(fields)
        lastModified = fields.first(.lastModified).flatMap { HTTPDate.parse($0) }
        date = fields.first(.date).flatMap { HTTPDate.parse($0) }
    }

    /// Whether there is nothing to revalidate by.
    package var isEmpty: Bool { etag == nil && lastModified == nil }

    /// Whether the modification date also tells bytes apart: the origin saw at least a second pass
    /// between the change and the response (RFC 9110 section 8.8.2.2).
    package var isLastModifiedStrong: Bool {
        guard let lastModified, let date else { return false }
        return lastModified < date
    }
}

/// The conditions of a request against a representation that exists (RFC 9110 section 13.2.2).
package enum Preconditions {
    /// What the conditions come to.
    package enum Outcome: Sendable, Hashable {
        /// Answer as if there were no condition.
        case proceed
        /// Answer 304.
        case notModified
        /// Answer 412.
        case failed
    }

    /// Whether a request has any of the conditions that `evaluate` looks at.
    package static func stand(in fields: Fields) -> Bool {
        fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince)
            || fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince)
    }

    /// Evaluates `If-Match`, `If-Unmodified-Since`, `If-None-Match` and `If-Modified-Since` in
    /// the order the RFC gives.
    ///
    /// A malformed date counts as absent.
    package static func evaluate(
        _ fields: Fields, method: HTTPMethod, validators: Validators
    ) -> Outcome {
        if let value = fields.combined(.ifMatch) {
            if !matches(value, validators.etag, strongly: true) { return .failed }
        } else if let limit = date(fields, .ifUnmodifiedSince),
            let modified = validators.lastModified, modified > limit
        {
            return .failed
        }
        let isRead = method == .get || method == .head
        if let value = fields.combined(.ifNoneMatch) {
            guard matches(value, validators.etag, strongly: false) else { return .proceed }
            return isRead ? .notModified : .failed
        }
        if isRead, let since = date(fields, .ifModifiedSince),
            let modified = validators.lastModified, modified <= since
        {
            return .notModified
        }
        return .proceed
    }

    /// Whether `If-Range` lets the request's `Range` count (RFC 9110 section 13.1.5); true where
    /// there is no `If-Range`.
    ///
    /// A tag must match strongly; a date must be exactly the modification date, and that one
    /// strong. When in doubt the answer is the whole representation, which is never wrong.
    package static func useRange(_ fields: Fields, validators: Validators) -> Bool {
        guard let value = fields.first(.ifRange) else { return true }
        guard fields.count(of: .ifRange) == 1 else { return false }
        if let tag = EntityTag(value) {
            return validators.etag.map(tag.matchesStrongly) ?? false
        }
        guard let date = HTTPDate.parse(value) else { return false }
        return date == validators.lastModified && validators.isLastModifiedStrong
    }

    private static func matches(_ value: String, _ etag: EntityTag?, strongly: Bool) -> Bool {
        switch EntityTagList(value) {
        case .any:
            return true
        case .tags(let tags):
            guard let etag else { return false }
            return tags.contains {
                strongly ? $0.matchesStrongly(etag) : $0.matchesWeakly(etag)
            }
        }
    }

    private static func date(_ fields: Fields, _ name: FieldName) -> Int64? {
        fields.count(of: name) == 1 ? fields.first(name).flatMap { HTTPDate.parse($0) } : nil
    }
}
