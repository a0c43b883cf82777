import CachePolicy
import HTTP
import Model

/// What the client's conditions and ranges make of a stored response that is not rewritten.
enum AnswerPart: Equatable {
    case notModified
    case preconditionFailed
    case rangeNotSatisfiable
    case whole
    case part(ResolvedRange)
    /// From this byte to an end that is not known yet (RFC 8673).
    case open(Int64)
    /// Several ranges, none of which touch.
    case parts([ResolvedRange])
}

/// What that is decided from.
struct AnswerFacts {
    let resource: Resource
    let fields: Fields
    let method: HTTPMethod
    /// The request's ranges.
    let range: ByteRangeSpec.Request
    let stored: ObjectFacts
    /// The length of the stored response, where it is known.
    let total: Int64?

    var part: AnswerPart {
        switch conditions {
        case .proceed: break
        case .notModified: return .notModified
        case .failed: return .preconditionFailed
        }
        guard case .ranges(let specs) = range, stored.head.status == .ok, method == .get,
            Preconditions.useRange(fields, validators: stored.validators)
        else { return .whole }
        return part(of: specs)
    }

    /// What the client's conditions come to.
    private var conditions: Preconditions.Outcome {
        guard Preconditions.stand(in: fields) else { return .proceed }
        guard resource.kind != nil else {
            return Preconditions.evaluate(fields, method: method, validators: stored.validators)
        }
        // Conditions are for what would be a success without them (RFC 9110 section 13.2.1).
        guard stored.head.status == .ok else { return .proceed }
        // Tags that are no tags are still equal where their bytes are.
        if let given = fields.valueBytes(.ifNoneMatch),
            let own = stored.head.fields.valueBytes(.etag), given == own
        {
            return .notModified
        }
        // Those two are for origins, which were asked already (RFC 9111 section 4.3.2).
        var conditions = fields
        conditions.remove(.ifMatch)
        conditions.remove(.ifUnmodifiedSince)
        return Preconditions.evaluate(conditions, method: method, validators: stored.validators)
    }

    /// The one range that is answered as 206.
    ///
    /// Several ranges of a playback URL are answered with the whole, which RFC 9110 section 14.2
    /// allows, as is a range of a body whose length is not known yet.
    private func part(of specs: [ByteRangeSpec]) -> AnswerPart {
        if specs.count > 1 {
            guard resource.kind != nil, let total else { return .whole }
            let ranges = Multipart.combined(specs, total: total)
            guard let first = ranges.first else { return .rangeNotSatisfiable }
            return ranges.count == 1 ? .part(first) : .parts(ranges)
        }
        guard let total else { return partOfUnknownLength(specs[0]) }
        return specs[0].resolve(total: total).map(AnswerPart.part) ?? .rangeNotSatisfiable
    }

    private func partOfUnknownLength(_ spec: ByteRangeSpec) -> AnswerPart {
        if resource.isGrowing, let first = spec.openStart { return .open(first) }
        guard case .bounded(let first, let last) = spec, first > 0 || last < 1 << 20 else {
            return .whole
        }
        return .part(ResolvedRange(first: first, last: last))
    }
}

extension ByteRangeSpec {
    /// Where a range starts that goes to the end of a resource which is still growing.
    fileprivate var openStart: Int64? {
        switch self {
        case .from(let first): first
        case .bounded(let first, let last) where last >= Wanted.openEnd: first
        default: nil
        }
    }
}
