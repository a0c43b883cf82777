import CachePolicy
import HTTP
import Model

/// The fields of a request to an origin: the client's own, those of its session, and what makes it
/// conditional or a request for a range.
///
/// A request that goes to a parent gets some more (`Flight.prepare`).
struct RequestFields {
    private(set) var fields: Fields
    /// The validator that `limit` has added as If-Range; nil for none.
    private(set) var rangeCondition: String?
    private let isGrowing: Bool

    /// Makes the fields that every request for a resource has; without a Cookie field of its
    /// session, that of the client stays.
    init(for resource: Resource, cookie: String?) {
        fields = resource.forwardedFields
        isGrowing = resource.live.growth != nil
        for (name, value) in resource.session.fields { fields.set(name, value) }
        if let cookie { fields.set(.cookie, cookie) }
        // Titles between the bytes would belong to one viewer only.
        if !resource.followsHTTP { fields.remove("Icy-MetaData") }
    }

    mutating func add(conditions: Fields) { fields.append(contentsOf: conditions) }

    /// Asks whether one of several stored responses is still valid, with their validators byte for
    /// byte as the origin sent them.
    ///
    /// - Parameters:
    ///   - head: the response that is revalidated; nil for variants only.
    ///   - tags: the entity tags of stored variants.
    mutating func revalidate(_ head: StoredHead?, tags: [String]) {
        if let date = head?.fields.valueBytes(.lastModified) {
            fields.append(nameBytes: FieldName.ifModifiedSince.spelling.utf8, valueBytes: date)
        }
        var value = head?.fields.valueBytes(.etag).map { Array($0) } ?? []
        for tag in tags {
            if !value.isEmpty { value += ", ".utf8 }
            value += tag.utf8
        }
        guard !value.isEmpty else { return }
        fields.append(nameBytes: FieldName.ifNoneMatch.spelling.utf8, valueBytes: value)
    }

    /// Asks for a range, of the stored version only if that has a strong validator.
    ///
    /// - Parameters:
    ///   - range: the Range field.
    ///   - head: the response whose rest is wanted; nil if nothing is stored of it, or if the part
    ///     may be of any version.
    mutating func limit(to range: String, of head: StoredHead?) {
        fields.set(.range, range)
        // The validator of a growing resource changes with each part.
        guard let validator = head?.strongValidator, !isGrowing else { return }
        fields.set(.ifRange, validator)
        rangeCondition = validator
    }
}
