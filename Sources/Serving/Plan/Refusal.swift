import HTTP
import Model
import Posix
import URISyntax

/// Why a request fails.
enum Refusal: Equatable, Sendable, CaseIterable {
    /// Nothing usable is stored, and the policy forbids fetching.
    case notStored
    /// A part is missing, and the policy forbids fetching.
    case partNotStored
    /// A part is missing, and its origin does not answer.
    case partOfSilentOrigin
    /// Nothing that the playlist names is stored, and the policy forbids fetching.
    case nothingKept
    /// Nothing that the playlist names is stored, and its origins do not answer.
    case nothingKeptOfSilentOrigin
    /// The client's `only-if-cached`.
    case onlyIfCached
    /// The origin has reused the name for another resource.
    case nameGivenAway
    /// The stored text cannot be parsed; the parser's message is passed on.
    case unreadable
    /// The origin failed, and nothing can be served instead; the failure's message is passed on.
    case failure

    /// The party that has to act; nil if the failure itself says so.
    var fault: ProxyFailure.Fault? {
        switch self {
        case .notStored, .partNotStored, .nothingKept: .us
        case .partOfSilentOrigin, .nothingKeptOfSilentOrigin: .origin
        case .onlyIfCached, .nameGivenAway: .client
        case .unreadable, .failure: nil
        }
    }

    /// Returns the failure for the client.
    ///
    /// - Parameters:
    ///   - url: the requested URL.
    ///   - mark: the mark of its origin, if that does not answer.
    ///   - known: the failure that this refusal passes on.
    ///   - isOfRecording: true if it is requested for a recording that has ended, is paused or was
    ///     forgotten, which is why no origin is asked.
    ///   - recording: the id of that recording if it is paused.
    ///   - now: the end of the silence in the message.
    /// - Returns: the failure, with its fault, status and message.
    func failure(
        of url: AbsoluteURL, _ mark: OriginHealth.Mark?, known: ProxyFailure?, isOfRecording: Bool,
        paused recording: String? = nil, now: Monotonic
    ) -> ProxyFailure {
        guard let fault else {
            return known
                ?? ProxyFailure(.us, .internalServerError, "\(url.redacted) cannot be served")
        }
        if let mark, fault == .origin {
            return mark.refusal(of: url, isList: self == .nothingKeptOfSilentOrigin, now: now)
        }
        if isOfRecording, fault == .us {
            var reason = """
                an ended recording plays from the store alone: this was not recorded, or was \
                purged, cleared or forgotten
                """
            if let recording {
                reason = """
                    nothing is fetched for its recording, which is paused because the daemon \
                    crashed; continue it with `sluice record --resume \(recording)`
                    """
            }
            return ProxyFailure(
                fault, .gatewayTimeout,
                "\(url.redacted) is not stored, or only in part, and \(reason)")
        }
        let status: HTTPStatus = self == .nameGivenAway ? .notFound : .gatewayTimeout
        var failure = ProxyFailure(fault, status, text(url.redacted))
        failure.isUnasked = true
        // What the request or the name forbids.
        if self == .onlyIfCached { failure.lookupDetail = "only-if-cached" }
        if self == .nameGivenAway { failure.lookupDetail = "name-reused" }
        return failure
    }

    private func text(_ subject: String) -> String {
        switch self {
        case .notStored: "\(subject) is not stored, and the policy offline forbids to fetch it"
        case .partNotStored: "\(subject) is stored only in part, and the policy is offline"
        case .partOfSilentOrigin:
            "\(subject) is stored only in part, and its origin does not answer"
        case .nothingKept:
            "nothing that \(subject) names is stored, and the policy offline forbids to fetch it"
        case .nothingKeptOfSilentOrigin:
            "nothing that \(subject) names is stored, and its origins do not answer"
        case .onlyIfCached: "\(subject) is not stored, and the request forbids to fetch it"
        case .nameGivenAway: "\(subject) stands for another segment now; reload the playlist"
        case .unreadable, .failure: "\(subject) cannot be served"
        }
    }
}
