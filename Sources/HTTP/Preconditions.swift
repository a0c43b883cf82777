/// The validators of the stored representation that a conditional request is evaluated against.
package struct Validators: Sendable, Hashable {
    /// The entity tag; nil if the origin sent none.
    package var etag: EntityTag?
    /// `Last-Modified` in seconds since 1970; nil if the origin sent none.
    package var lastModified: Int64?
    /// `Date` of the response with `lastModified`, in seconds since 1970; without it a modification
    /// date is not a strong validator.
    package var date: Int64?

    package init(etag: EntityTag? = nil, lastModified: Int64? = nil, date: Int64? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.date = date
    }

    /// True if the modification date is a strong validator: at least a second passed at the origin
    /// between the change and the response (RFC 9110 section 8.8.2.2).
    package var isLastModifiedStrong: Bool {
        guard let lastModified, let date else { return false }
        return lastModified < date
    }
}

/// Evaluates the conditions of a request against an existing representation (RFC 9110 section
/// 13.2.2).
package enum Preconditions {
    /// The result of the conditions.
    package enum Outcome: Sendable, Hashable {
        /// Respond as if there were no condition.
        case proceed
        /// Respond with 304.
        case notModified
        /// Respond with 412.
        case failed
    }

    /// True if a request has any of the conditions that `evaluate` evaluates.
    package static func stand(in fields: Fields) -> Bool {
        fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince)
            || fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince)
    }

    /// Evaluates `If-Match`, `If-Unmodified-Since`, `If-None-Match` and `If-Modified-Since` in the
    /// order of the RFC.
    ///
    /// A malformed date is ignored.
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

    /// True if `If-Range` lets the request's `Range` apply (RFC 9110 section 13.1.5), or is absent.
    ///
    /// A tag must match by strong comparison; a date must be exactly the modification date, which
    /// must be a strong validator. In doubt the whole representation is sent, which is never wrong.
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
