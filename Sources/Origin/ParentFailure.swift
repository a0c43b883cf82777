import HTTP
import Upstream

/// The party whose failure an error from a parent reports; nil for an error of the origin itself.
enum ParentFailure: Equatable {
    /// The parent does not work, or will not serve us.
    case itself
    /// The parent works, but could not reach the origin.
    case itsWay

    init?(_ head: TransferHead, isSluice: Bool) {
        let status = head.status.rawValue
        guard status >= 400 else { return nil }
        if isSluice {
            // A sluice passes answers of origins on with its member of Cache-Status (RFC 9211).
            guard let said = head.fields.combined(.cacheStatus) else {
                self = .itself
                return
            }
            guard said.contains("detail=origin-error") else { return nil }
            self = .itsWay
            return
        }
        switch status {
        case 407, 421, 503: self = .itself
        case 502, 504: self = .itsWay
        default: return nil
        }
    }
}
