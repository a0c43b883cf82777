// What a flight does, and whom it answers.
import Model
import Posix

extension FlightMachine {
    // MARK: Those who wait

    /// A request that waits for the object.
    struct Waiter {
        let id: FetchID
        let delivery: Delivery
        let isCollapsed: Bool
        /// The first byte that is wanted.
        let start: Int64
        /// Whether the whole body is wanted.
        var wantsWhole = false
        /// The budget of the player request; nil for one that brought none.
        let budget: OriginBudget?
        let reply: @Sendable (FetchReply) -> Void
    }

    /// What waiters are told at the end of a flight that has no object for them.
    enum Answer {
        case failure(ProxyFailure)
        /// The stored object was renewed by a 304.
        case renewed
        /// An answer without content.
        case head
        /// Other flights have brought what was wanted.
        case filledByOthers
    }

    // MARK: Actions

    enum Action {
        /// Look at what is stored around the wanted bytes; `looked` follows at once.
        case ask
        /// Start a transfer.
        case send(Attempt)
        /// Call `backedOff` after a time.
        case schedule(Interval)
        /// Call `othersLooked` in a while.
        case watchOthers
        /// End the transfer; nothing that it still says is heard.
        case drop
        /// End the transfer and wait for its end.
        case cancel
        /// Raise the transfer to the lane of the flight.
        case raise
        /// Let a transfer go on that was held back.
        case release
        /// Begin, or go on, to fill an object with the present response.
        case begin(Placement)
        /// Renew the stored object with the present response (304).
        case renew
        /// Compare the present response with the stored object (HEAD).
        case compareHead
        /// Take the length of the body from a 416.
        case learnEnd(Int64?)
        case discardObject
        /// Forget the object without ending a fill: there is none.
        case forgetObject
        /// Discard object and fill.
        case startOver
        case publish
        /// The body ends where it has been written to.
        case markEnd
        /// Have lists read; `listsRead` follows.
        case readLists
        /// The body is whole: end the fill.
        case complete(Completion)
        /// Let go of transfer and fill; what has come is kept where the rest can be joined to it.
        indirect case close(cause: (any Error)?, cancels: Bool)
        /// Tell waiters of the object.
        case deliver([Waiter])
        /// Indirect, as what is long and rare: each action is copied where it is performed.
        indirect case answer([Waiter], Answer)
        /// All attempts for the resource have failed, or a request has spent its budget.
        case noteGivenUp(isSpent: Bool)
        case noteOtherVersion
        case count(Counters.Name)
    }

    enum Completion {
        /// The transfer ended, and with it the body.
        case atEnd
        /// Every byte that was wanted has come, however the transfer ended.
        ///
        /// `isKnown` is false where too few bytes came to tell what the object is.
        case atLength(isKnown: Bool)
    }
}
