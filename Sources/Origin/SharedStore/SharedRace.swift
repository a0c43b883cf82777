// The second level and the origin, asked for the same bytes, as a value: events go in, actions come
// out.
//
//     headStart ──time over──▶ both ──head of the origin──▶ over: the read is of no use
//         │                     │
//         │                     └──failure of the origin──┐
//         └──origin down, time over──▶ kept ◀─────────────┘
//                                       └──time over──▶ over: the read takes too long
//
//     headStart, both, kept ──the object begins──▶ won: the second level fills it
//     headStart, both, kept ──the read ends──▶ over: the origin goes on, is asked now, or its
//                                              failure is the answer
//
// A failure of the origin is kept back while the read is under way: the second level may have what
// is wanted. Unless that begins within some seconds, the failure is the answer. If the origin is
// known to be down, the race begins with its failure.
//
// The flight has the transfer, the read and the timer, and performs the actions.
import CachePolicy
import HTTP
import Model
import Posix
import Upstream

/// Which of the second level and the origin serves one request of a flight.
struct SharedRace {
    /// A failure of the origin that is kept back.
    enum OriginFailure {
        /// The origin is down: this is the answer, whatever it sends after that.
        case refused(ProxyFailure)
        /// A head that is no use to a player, and how its transfer ended, once it has.
        case answered(TransferHead, TransferResult?)
        /// The transfer ended without a head.
        case ended(TransferResult)
    }

    enum State {
        /// The second level is asked alone; with the failure of an origin that went down meanwhile.
        case headStart(refusal: ProxyFailure?)
        /// The origin is asked too.
        case both
        /// The origin has failed.
        case kept(OriginFailure)
        /// The second level has begun with the object of this stored head.
        case won(StoredHead)
        /// The second level sends nothing.
        case over
    }

    enum Action {
        /// Call `timeIsOver` after a time, and not after one that was stated before.
        case wait(Interval)
        case stopWaiting
        /// Ask the origin; `isHedge` is true while the second level may still win.
        case askOrigin(isHedge: Bool)
        /// End the origin's transfer, which has lost.
        case endOrigin
        /// End the read, which has lost.
        case endRead
        /// End the read, which has not begun in time.
        case giveUpRead
        /// End the body, all of which was read.
        case finish
        /// Write what was read, and have the origin send the rest.
        case resume
        /// Forget the race: the flight goes on without it.
        case leave
        /// Handle what the origin sent, or answer with its failure.
        case handle(OriginFailure)
    }

    /// The reply to an event of the origin.
    struct Reply {
        /// False if the flight itself handles the event.
        let isKeptBack: Bool
        var actions: [Action] = []

        static var ignored: Reply { Reply(isKeptBack: false) }
    }

    /// How long a failure of the origin is kept back, however many requests a read takes: each of
    /// these may take as long.
    static let patience = Interval.seconds(3 as Int64)

    private(set) var state: State
    /// True once the origin has failed, so that it is not known to have what the read lacks.
    private(set) var hasOriginFailed: Bool
    private let headStart: Interval

    /// Makes a race whose read is about to begin.
    ///
    /// - Parameters:
    ///   - headStart: the time until the origin is asked too.
    ///   - refusal: why the origin cannot be asked; nil if it can.
    init(headStart: Interval, refusal: ProxyFailure?) {
        self.headStart = headStart
        hasOriginFailed = refusal != nil
        if let refusal {
            state = .kept(.refused(refusal))
        } else {
            state = .headStart(refusal: nil)
        }
    }

    // MARK: Queries

    /// True for an answer of the origin that is no use to a player, so that the second level did
    /// not lose to it: the origin may refuse a token, or no longer have what is stored.
    ///
    /// 416 tells how long the body is.
    static func mayBeSpared(_ status: HTTPStatus) -> Bool {
        400...599 ~= status.rawValue && status.rawValue != 416
    }

    /// The stored head of the object, once the second level has won; nil before.
    var head: StoredHead? {
        if case .won(let head) = state { head } else { nil }
    }

    var hasWon: Bool {
        if case .won = state { true } else { false }
    }

    // MARK: Time

    /// Returns the actions at the beginning of the read.
    func begin() -> [Action] {
        if case .kept = state { [.wait(Self.patience)] } else { [.wait(headStart)] }
    }

    /// Handles the end of the time that was waited for.
    mutating func timeIsOver() -> [Action] {
        switch state {
        case .headStart(let refusal?):
            state = .kept(.refused(refusal))
            return [.wait(Self.patience)]
        case .headStart(.none):
            state = .both
            return [.askOrigin(isHedge: true)]
        case .kept: return [.giveUpRead] + readEnded(isComplete: false)
        case .both, .won, .over: return []
        }
    }

    // MARK: The origin

    /// Handles the head of the origin's response.
    mutating func originAnswered(_ head: TransferHead) -> Reply {
        switch state {
        case .won, .over: return .ignored
        case .headStart, .both, .kept: break
        }
        guard Self.mayBeSpared(head.status) else {
            state = .over
            return Reply(isKeptBack: false, actions: [.endRead])
        }
        return keep(.answered(head, nil))
    }

    /// Handles the end of the origin's transfer.
    mutating func originEnded(_ result: TransferResult) -> Reply {
        switch state {
        case .won, .over: .ignored
        case .kept(.answered(let head, _)): keep(.answered(head, result))
        case .headStart, .both, .kept: keep(.ended(result))
        }
    }

    /// Handles that the origin is known to be down, or redirects to a host that is.
    mutating func originRefused(_ failure: ProxyFailure) -> Reply {
        hasOriginFailed = true
        switch state {
        case .over: return .ignored
        // Whether the origin can send a rest that the second level does not is decided then.
        case .won: return Reply(isKeptBack: true)
        case .headStart:
            state = .headStart(refusal: failure)
            return Reply(isKeptBack: true)
        case .both, .kept: return keep(.refused(failure))
        }
    }

    private mutating func keep(_ failure: OriginFailure) -> Reply {
        hasOriginFailed = true
        var actions: [Action] = []
        switch (state, failure) {
        case (.kept(.refused), .answered), (.kept(.refused), .ended): break
        case (.kept, _): state = .kept(failure)
        default:
            state = .kept(failure)
            actions = [.wait(Self.patience)]
        }
        return Reply(isKeptBack: true, actions: actions)
    }

    // MARK: The second level

    /// Handles the beginning of the object, with its stored head.
    mutating func readBegan(_ head: StoredHead) -> [Action] {
        switch state {
        case .headStart, .both, .kept:
            state = .won(head)
            return [.stopWaiting, .endOrigin]
        case .won, .over: return []
        }
    }

    /// Handles the end of the read.
    ///
    /// A race that was won stays so until the flight has written what was read.
    mutating func readEnded(isComplete: Bool) -> [Action] {
        let last = state
        if !hasWon { state = .over }
        switch last {
        case .headStart(.none): return [.leave, .askOrigin(isHedge: false)]
        case .headStart(let refusal?): return [.leave, .handle(.refused(refusal))]
        // The origin's answer is still to come.
        case .both: return [.leave]
        case .kept(let failure): return [.leave, .handle(failure)]
        case .won: return isComplete ? [.finish, .leave] : [.resume]
        case .over: return []
        }
    }
}
