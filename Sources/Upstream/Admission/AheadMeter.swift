// What transfers ahead of players tell the controller of concurrency.

/// Measurements of one host for the controller of concurrency, since the last call.
package struct AheadFigures: Sendable, Hashable {
    /// Body bytes, those for players included.
    package var bytes: Int64 = 0
    /// Ahead transfers that succeeded.
    package var finished = 0
    /// Ahead transfers that failed on the link, timed out or were refused with 429 or 503.
    package var errors = 0
    /// The number of response heads, and the total time until them in seconds.
    package var answers = 0
    package var answerSeconds = 0.0
    /// Ahead transfers running now.
    package var inFlight = 0

    package init() {}
}

/// The measurements while ahead transfers run.
struct AheadMeter {
    private(set) var hosts: [String: AheadFigures] = [:]

    mutating func add(bytes: Int, from host: String) {
        hosts[host, default: AheadFigures()].bytes += Int64(bytes)
    }

    mutating func add(answerAfter seconds: Double, from host: String, isRefusal: Bool) {
        hosts[host, default: AheadFigures()].answers += 1
        hosts[host, default: AheadFigures()].answerSeconds += seconds
        if isRefusal { hosts[host, default: AheadFigures()].errors += 1 }
    }

    mutating func add(_ result: TransferResult, from host: String) {
        switch result {
        case .success: hosts[host, default: AheadFigures()].finished += 1
        case .failure(let error) where error.isOfTheLink:
            hosts[host, default: AheadFigures()].errors += 1
        case .failure: break
        }
    }

    mutating func take() -> [String: AheadFigures] {
        let taken = hosts
        hosts = [:]
        return taken
    }
}

extension UpstreamError {
    /// True if fewer concurrent transfers might have avoided the failure.
    fileprivate var isOfTheLink: Bool {
        switch kind {
        case .connect, .connectTimeout, .reset, .truncated, .firstByteTimeout, .stalled: true
        case .resolve, .proxy: isSilence
        default: false
        }
    }
}
