// What a link of the daemon leads to.
import HLS
import Model
import Routing
import Store
import URISyntax

/// The decoded target of a link.
struct LinkTarget {
    let session: SessionID
    /// The session that the link carries; nil if only its ID is known.
    var opened: Session?
    let url: AbsoluteURL
    let epoch: Epoch
    /// True if the link itself contains the target; otherwise it may lead elsewhere the next time.
    var isSteady = true
}

/// The result of resolving a link without reading a long text.
enum LinkLookup {
    case target(LinkTarget)
    /// The stored list must be read first.
    case inLongList(StoredObject)
}
