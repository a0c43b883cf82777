import HTTP
import URISyntax
import Upstream

/// The party whose failure a parent's response is; nil for a response of the origin itself.
enum ParentFailure: Equatable {
    /// The parent does not work, or will not serve us.
    case itself
    /// The parent works, but could not reach the origin.
    case itsWay

    init?(_ head: TransferHead, isSluice: Bool) {
        let status = head.status.rawValue
        if isSluice {
            // A sluice passes answers of origins on with its member of Cache-Status (RFC 9211).
            // Without one, another program may answer there, such as with a page for any URL.
            guard let said = head.fields.combined(.cacheStatus) else {
                self = .itself
                return
            }
            guard status >= 400, said.contains("detail=origin-error") else { return nil }
            self = .itsWay
            return
        }
        switch status {
        case 407, 421, 503: self = .itself
        case 502, 504: self = .itsWay
        default: return nil
        }
    }

    /// True if a response to a probe shows that a parent serves this daemon.
    ///
    /// - Parameters:
    ///   - status: the status.
    ///   - isSluice: true for another sluice, which is probed in the form of its children, but
    ///     without `CDN-Loop`: it compares the token, and refuses the rest with 400.
    /// - Returns: false for a failure of the parent itself.
    static func isOver(after status: HTTPStatus, isSluice: Bool) -> Bool {
        if isSluice { return status == .badRequest }
        return status.rawValue < 500 && ![407, 421].contains(status.rawValue)
    }

    /// The error of a parent whose response is a failure of its own.
    static func error(_ status: HTTPStatus, of parent: Parent) -> UpstreamError {
        var detail = "it answered \(status.rawValue)"
        var advice = ""
        switch status.rawValue {
        case 401 where parent.isSluice, 407:
            advice = "write its access token into the setting: --parent http://:TOKEN@HOST:PORT"
        case 421 where parent.isSluice: advice = "start the parent with --host-name"
        case ..<400 where parent.isSluice:
            detail += "; it is not another sluice"
            advice = "correct its port, or write --parent as a template for another cache"
        default: break
        }
        var error = UpstreamError(.proxy, host: parent.origin.host)
        error.message = "the parent \(parent.origin) cannot be used: \(detail)"
        error.advice = advice
        return error
    }
}
