// The one place where a playlist becomes another one before its URIs are rewritten: origin's text,
// then time shift, then what can be played without the network.
import HLS
import Routing
import Store
import URISyntax

/// Which form of a stored playlist is served: what it depends on beside the origin's bytes.
///
/// Rewritten forms are kept in memory by this, so it changes whenever the text would.
struct PlaylistForm: Hashable, Sendable {
    /// The state of the recording that the window is extended from; 0 without time shift.
    var timeShift: UInt64 = 0
    /// The state of what is kept that the list is cut down to; 0 with the network there.
    var offline: UInt64 = 0

    /// The origin's text as it is.
    static let origin = PlaylistForm()
}

extension OriginExchange {
    /// The form in which a stored playlist is served now; asked for with every request, so it must
    /// cost no more than a look into a table.
    func form(of object: StoredObject, _ facts: ObjectFacts) -> PlaylistForm {
        var form = PlaylistForm.origin
        form.timeShift = shiftVersion(of: object, facts)
        if case .cut(let text)? = offline { form.offline = text.number }
        return form
    }

    /// The epoch that a name of the served list is in.
    ///
    /// - Parameters:
    ///   - reference: the name, in the served form.
    ///   - epochs: those of the origin's last window, where they are not the first.
    /// - Returns: the epoch to write into the link.
    func epoch(of reference: ResourceReference, _ epochs: [AbsoluteURL: Epoch]) -> Epoch {
        reference.role == .playlist ? .first : epochs[reference.url] ?? .first
    }

    /// The text of a playlist in the form that is served; URIs stay the origin's.
    ///
    /// - Parameters:
    ///   - text: the origin's text as it is stored.
    ///   - base: what its references are relative to.
    ///   - form: what `form(of:_:)` said.
    /// - Returns: the text to rewrite.
    /// - Throws: `PlaylistError` where the origin's text cannot be read.
    func transformed(
        _ text: [UInt8], base: AbsoluteURL, to form: PlaylistForm
    ) throws(PlaylistError) -> [UInt8] {
        guard form != .origin else { return text }
        if form.offline != 0, case .cut(let cut)? = offline { return cut.bytes }
        if form.timeShift != 0, let longer = shifted() { return longer }
        return text
    }
}
