import HLS
import HTTP
import Model

/// What an origin is asked for when nothing is stored.
struct MissingPart: Equatable, Sendable {
    let wanted: Wanted
    /// True where the first bytes are fetched to learn the type; the range that was asked for follows
    /// once it is known.
    var learnsTypeFirst = false

    static let whole = MissingPart(wanted: .whole)
}

extension RequestFacts {
    /// What to ask an origin for when nothing is stored; text is always asked for whole.
    var missingPart: MissingPart {
        guard !resource.isNamedAsText else { return .whole }
        // What may turn out to be a playlist is told from media by its first bytes.
        let isOpen = resource.role == nil && resource.decodesContent
        let first = Int64(PlaylistDetector.prefixLength)
        if method == .head {
            guard resource.kind == nil else { return .whole }
            return MissingPart(wanted: .span(start: 0, end: isOpen ? first : 2))
        }
        guard case .ranges(let specs) = range, specs.count == 1,
            Preconditions.useRange(asked.fields, validators: Validators())
                || !asked.fields.contains(.ifRange)
        else { return .whole }
        return isOpen ? openPart(specs[0], first) : MissingPart(wanted: Self.span(specs[0]))
    }

    private static func span(_ spec: ByteRangeSpec) -> Wanted {
        switch spec {
        case .bounded(let first, let last):
            .span(start: first, end: last >= Wanted.openEnd ? nil : last + 1)
        case .from(0): .whole
        case .from(let first): .span(start: first, end: nil)
        case .suffix(let length): length > 0 ? .suffix(length) : .whole
        }
    }

    /// The beginning of a body whose type is open, as far as it is asked for, and enough of it to
    /// judge it by.
    private func openPart(_ spec: ByteRangeSpec, _ first: Int64) -> MissingPart {
        switch spec {
        case .from(0), .suffix(0): .whole
        case .bounded(0, let last) where last >= Wanted.openEnd: .whole
        case .bounded(0, let last):
            MissingPart(wanted: .span(start: 0, end: max(first, last + 1)))
        default: MissingPart(wanted: .span(start: 0, end: first), learnsTypeFirst: true)
        }
    }
}

extension Resource {
    /// Whether the place says that the body is read and rewritten here, so that it must be whole.
    var isNamedAsText: Bool { role == .playlist || role == .json }
}
