package import Posix

/// Where a timer, a job or work for the end of a round was scheduled.
package struct CallSite: Sendable, CustomStringConvertible {
    let file: StaticString
    let line: UInt

    package init(_ file: StaticString, _ line: UInt) {
        self.file = file
        self.line = line
    }

    package var description: String { "\(file):\(line)" }
}

/// A piece of work that kept a loop from its other work for longer than the limit.
package struct LoopHold: Sendable {
    /// The longest that one handler, timer or job may take on a loop of players or origins.
    package static let limit = Interval.milliseconds(10)

    /// The kind of work.
    package enum Work: Sendable, CustomStringConvertible {
        /// The handler of a ready descriptor, by its type.
        case handler(String)
        case timer(CallSite)
        case job(CallSite)
        case roundEnd(CallSite)

        package var description: String {
            switch self {
            case .handler(let type): "handler \(type)"
            case .timer(let site): "timer of \(site)"
            case .job(let site): "job of \(site)"
            case .roundEnd(let site): "end of round of \(site)"
            }
        }
    }

    package let work: Work
    /// Measured by the monotonic clock, so that waiting for a disk or a processor counts.
    package let duration: Interval

    /// Called on the loop's thread, after the work.
    package typealias Observer = @Sendable (LoopHold) -> Void
}
