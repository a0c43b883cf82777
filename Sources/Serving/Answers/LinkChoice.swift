import HLS
import Lookahead
import Model
import Routing
import URISyntax

/// The choice of the link that each name in a playlist gets: what is the same for all of them.
///
/// `State` is apart from it: a closure captures a constant by value, and reads its parts without
/// counting references, which would otherwise be done for each of a thousand names.
struct LinkChoice {
    let writer: LinkWriter
    /// Scheme, host and base path, for links that must be absolute.
    let host: String
    /// What the links carry of their session.
    let seal: SessionSeal?
    let addresses: OwnAddresses
    /// The epochs of names in the origin's last window, without first epochs.
    let epochs: [AbsoluteURL: Epoch]
    /// The window that recorded the epochs of names of segments that it has; nil if those of the
    /// origin's last window apply to all.
    let shift: TimeShift?
    /// The places in a live list; nil for any other list.
    let names: LiveNames?
    /// The query item with the cookies that each link carries; nil for none.
    let cookies: [UInt8]?

    /// What changes from name to name.
    struct State {
        /// The links to channels with request headers of their own; nil if the list sets none.
        var channelLinks: ChannelLinks?
        /// The links of segments behind the kept head; nil if everything is kept.
        var head: KeptHead?
        var early: EarlyOrigins
        var reported: ReportedLists
        /// The list as look-ahead needs it; nil if look-ahead does not.
        var sketch: CompactMediaList.Sketch?
        /// The writer of links that are absolute; nil until there is one.
        var absoluteLinks: LinkWriter?
        /// True once an EXT-X-MAP was in force.
        var hasMap = false
        /// The last host: lists name one a thousand times in a row, and it is checked once.
        var judged: (url: AbsoluteURL, isOwn: Bool)?
        /// The last folder whose host is not this daemon; also checked once.
        var others: URLFolder?
    }

    /// Appends the link of a name; must be called once for each name, in list order.
    ///
    /// - Returns: false if the name stays unchanged.
    @inline(__always)
    func write(
        _ reference: ResourceReference, to output: inout [UInt8], _ state: inout State
    ) -> Bool {
        state.sketch?.add(reference)
        var isOwn = false
        if state.others == nil || reference.place.folder !== state.others {
            let neighbour = reference.place.neighbour
            if let judged = state.judged, judged.url.sharesAuthority(with: neighbour) {
                isOwn = judged.isOwn
            } else {
                isOwn = addresses.contains(neighbour)
                state.judged = (neighbour, isOwn)
                if !isOwn { state.early.add(neighbour) }
            }
            state.others = isOwn ? nil : reference.place.folder
        }
        // Links to this daemon stay unchanged: a second handle around one would loop.
        if isOwn { return false }
        if reference.hasMap { state.hasMap = true }
        if reference.role == .media || state.channelLinks != nil, reference.tag == .inf,
            isOpenedDirectly(reference, state.channelLinks)
        {
            output.append(contentsOf: reference.url.bytes)
            return true
        }
        let epoch =
            shift?.nameEpoch(of: reference, for: reference.mediaSequence)
            ?? (epochs.isEmpty ? .first : presentEpoch(of: reference))
        if let own = state.channelLinks?.links(of: reference) {
            own.append(reference, to: &output)
            return true
        }
        switch (state.head?.link(of: reference) ?? .kept, reference.tag) {
        case (.origins, _): output.append(contentsOf: reference.url.bytes)
        case (.kept, .dateRange):
            // Players do not resolve URLs in date ranges (8216bis, appendix D).
            let absolute = state.absoluteLinks ?? writer.links(behind: host + (seal?.path ?? ""))
            state.absoluteLinks = absolute
            // The window knows no epochs of resources that are not part of the stream.
            absolute.append(reference, in: .first, to: &output)
        case (let link, _):
            let place = names?.place(of: reference)
            if let names, let place {
                writer.append(reference, at: place, of: names.list, in: epoch, to: &output)
            } else if case .renditionReport = reference.tag,
                let url = state.reported.url(of: reference)
            {
                writer.append(url, reference, in: epoch, to: &output)
            } else {
                writer.append(reference, in: epoch, to: &output)
            }
            let isUnkept = if case .unkept = link { true } else { false }
            if isUnkept {
                output.append(contentsOf: place == nil ? KeptHead.suffix : KeptHead.furtherSuffix)
            }
            if let cookies {
                output.append(place == nil && !isUnkept ? 0x3F : 0x26)
                output.append(contentsOf: cookies)
            }
        }
        return true
    }

    /// True for a channel that is a manifest of DASH or Smooth Streaming, which players open
    /// without the daemon; false if they could not.
    private func isOpenedDirectly(_ reference: ResourceReference, _ links: ChannelLinks?) -> Bool {
        let url = reference.url
        let isForeign =
            ForeignManifest.isNamed(by: url.bytes[...])
            || links?.isForeignManifest(reference) == true
        // Only the daemon has the user information of a mount.
        return isForeign && !url.hasStandIn
    }

    /// Returns the epoch of a name, in the served form, in the origin's last window.
    private func presentEpoch(of reference: ResourceReference) -> Epoch {
        reference.role == .playlist ? .first : epochs[reference.url] ?? .first
    }
}
