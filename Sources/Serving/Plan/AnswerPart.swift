import CachePolicy
import HTTP
import Model

/// The effect of the client's conditions and ranges on a stored response that is not rewritten.
enum AnswerPart: Equatable {
    case notModified
    case preconditionFailed
    case rangeNotSatisfiable
    case whole
    case part(ResolvedRange)
    /// From this byte to an end that is unknown yet (RFC 8673).
    case open(Int64)
    /// Several ranges, none of which touch.
    case parts([ResolvedRange])
}

/// The facts that decide about the part of a stored response.
struct AnswerFacts {
    let resource: Resource
    let fields: Fields
    let method: HTTPMethod
    /// The request's ranges.
    let range: ByteRangeSpec.Request
    let stored: ObjectFacts
    /// The length of the stored response, if known.
    let total: Int64?
    /// The end of the bytes that are stored from the first one on, if the length is unknown.
    var storedEnd: Int64 = 0

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

    /// The outcome of the client's conditions.
    private var conditions: Preconditions.Outcome {
        guard Preconditions.stand(in: fields) else { return .proceed }
        guard resource.followsHTTP else {
            return Preconditions.evaluate(fields, method: method, validators: stored.validators)
        }
        // Conditions apply only to what would be a success without them (RFC 9110 section 13.2.1).
        guard stored.head.status == .ok else { return .proceed }
        // Malformed tags still match if their bytes are equal.
        if let given = fields.valueBytes(.ifNoneMatch),
            let own = stored.head.fields.valueBytes(.etag), given == own
        {
            return .notModified
        }
        // If-Match and If-Unmodified-Since are for origins, which were contacted before (RFC 9111
        // section 4.3.2).
        var conditions = fields
        conditions.remove(.ifMatch)
        conditions.remove(.ifUnmodifiedSince)
        return Preconditions.evaluate(conditions, method: method, validators: stored.validators)
    }

    /// Returns the part to answer as 206.
    ///
    /// Several ranges of a playback URL are answered with the whole body, which RFC 9110 section
    /// 14.2 allows, as is a range of a body of unknown length unless it is bounded and not just the
    /// beginning. The beginning of a growing resource is one of its segments, and so is one that is
    /// stored: the whole may be hours.
    private func part(of specs: [ByteRangeSpec]) -> AnswerPart {
        // No Content-Range describes a part of nothing, and players that request everything with
        // `bytes=0-` take a 416 for a fault (RFC 9110 sections 14.1.2 and 14.2).
        if total == 0, specs.contains(where: \.asksForBeginning) { return .whole }
        if specs.count > 1 {
            guard resource.followsHTTP, let total else { return .whole }
            let ranges = Multipart.combined(specs, total: total)
            guard let first = ranges.first else { return .rangeNotSatisfiable }
            return ranges.count == 1 ? .part(first) : .parts(ranges)
        }
        guard let total else { return partOfUnknownLength(specs[0]) }
        return specs[0].resolve(total: total).map(AnswerPart.part) ?? .rangeNotSatisfiable
    }

    private func partOfUnknownLength(_ spec: ByteRangeSpec) -> AnswerPart {
        if resource.isGrowing, let first = spec.openStart { return .open(first) }
        guard case .bounded(let first, let last) = spec,
            first > 0 || last < max(1 << 20, storedEnd) || resource.isGrowing
        else { return .whole }
        return .part(ResolvedRange(first: first, last: last))
    }
}

extension ByteRangeSpec {
    /// True for a range that includes the first byte, at least of a short body.
    fileprivate var asksForBeginning: Bool {
        switch self {
        case .bounded(let first, _), .from(let first): first == 0
        case .suffix(let length): length > 0
        }
    }

    /// The start of a range that extends to the end of a growing resource.
    fileprivate var openStart: Int64? {
        switch self {
        case .from(let first): first
        case .bounded(let first, let last) where last >= Wanted.openEnd: first
        default: nil
        }
    }
}
