import HTTP
import Model
import Posix
import URISyntax

/// Why a request fails.
enum Refusal: Equatable, Sendable, CaseIterable {
    /// Nothing usable is stored, and the policy forbids to ask.
    case notStored
    /// A part is missing, and the policy forbids to ask.
    case partNotStored
    /// A part is missing, and its origin does not answer.
    case partOfSilentOrigin
    /// Nothing that the playlist names is stored, and the policy forbids to ask.
    case nothingKept
    /// Nothing that the playlist names is stored, and where it lies nobody answers.
    case nothingKeptOfSilentOrigin
    /// The client's `only-if-cached`.
    case onlyIfCached
    /// The origin has given the name to another resource.
    case nameGivenAway
    /// The stored text cannot be read; the reader's own words are told.
    case unreadable
    /// The origin failed, and nothing may serve instead; the failure's own words are told.
    case failure

    /// Who has to act; nil where the failure itself tells.
    var fault: ProxyFailure.Fault? {
        switch self {
        case .notStored, .partNotStored, .nothingKept: .us
        case .partOfSilentOrigin, .nothingKeptOfSilentOrigin: .origin
        case .onlyIfCached, .nameGivenAway: .client
        case .unreadable, .failure: nil
        }
    }

    /// The status of the answer; nil where the failure itself tells.
    var status: HTTPStatus? {
        switch self {
        case .notStored, .partNotStored, .partOfSilentOrigin, .nothingKept,
            .nothingKeptOfSilentOrigin, .onlyIfCached:
            .gatewayTimeout
        case .nameGivenAway: .notFound
        case .unreadable, .failure: nil
        }
    }

    /// The failure that the client is told.
    ///
    /// - Parameters:
    ///   - url: what was asked for.
    ///   - mark: what is known of its origin, where that does not answer.
    ///   - known: the failure that this refusal passes on.
    ///   - now: the time that a silence is told for.
    /// - Returns: the failure, with its fault, status and words.
    func failure(
        of url: AbsoluteURL, _ mark: OriginHealth.Mark?, known: ProxyFailure?, now: Monotonic
    ) -> ProxyFailure {
        guard let fault, let status else {
            return known
                ?? ProxyFailure(.us, .internalServerError, "\(url.redacted) cannot be served")
        }
        if let mark, fault == .origin {
            return mark.refusal(of: url, isList: self == .nothingKeptOfSilentOrigin, now: now)
        }
        return ProxyFailure(fault, status, text(url.redacted))
    }

    private func text(_ subject: String) -> String {
        switch self {
        case .notStored: "\(subject) is not stored, and the policy offline forbids to fetch it"
        case .partNotStored: "\(subject) is stored only in part, and the policy is offline"
        case .partOfSilentOrigin: "\(subject) is stored only in part, and its origin is silent"
        case .nothingKept:
            "nothing that \(subject) names is stored, and the policy offline forbids to fetch it"
        case .nothingKeptOfSilentOrigin:
            "nothing that \(subject) names is stored, and where it lies nobody answers"
        case .onlyIfCached: "\(subject) is not stored, and the request forbids to fetch it"
        case .nameGivenAway: "\(subject) stands for another segment now; reload the playlist"
        case .unreadable, .failure: "\(subject) cannot be served"
        }
    }
}
