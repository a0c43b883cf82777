import HLS
import HTTP
import Model

/// The part to fetch when nothing is stored.
struct MissingPart: Equatable, Sendable {
    let wanted: Wanted
    /// True if the first bytes are fetched to learn the type; the requested range follows once it
    /// is known.
    var learnsTypeFirst = false

    static let whole = MissingPart(wanted: .whole)
}

extension RequestFacts {
    /// The part to fetch when nothing is stored; text is always fetched whole.
    var missingPart: MissingPart {
        guard !resource.isNamedAsText else { return .whole }
        // The first bytes distinguish a playlist from media.
        let isOpen = resource.role.isOpen && resource.decodesContent
        let first = Int64(PlaylistDetector.prefixLength)
        if method == .head {
            guard !resource.followsHTTP else { return .whole }
            return MissingPart(wanted: .span(start: 0, end: isOpen ? first : 2))
        }
        guard case .ranges(let specs) = range, specs.count == 1,
            Preconditions.useRange(circumstances.fields, validators: Validators())
                || !circumstances.fields.contains(.ifRange)
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

    /// Returns the requested beginning of a body of open type, extended to what sniffing needs.
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
    /// True if the role implies that the body is parsed and rewritten, so that it must be complete.
    var isNamedAsText: Bool { role == .playlist || role == .json }
}
