// The actions of a flight and its replies.
import HTTP
import Model
import Posix

extension FlightMachine {
    /// The reply to waiters when a flight ends without an object of its own.
    enum Answer {
        case failure(ProxyFailure)
        /// The stored object was renewed by a 304.
        case renewed
        /// A response without content.
        case head
        /// Other flights have fetched the requested bytes.
        case filledByOthers
    }

    enum Action {
        /// Look up what is stored around the wanted bytes; `neighboursFound` follows immediately.
        case ask
        /// Start a transfer.
        case send(Attempt)
        /// Call `backedOff` after a time.
        case schedule(Interval)
        /// Call `othersLooked` after 100 ms.
        case watchOthers
        /// End the transfer; its further callbacks are ignored.
        case drop
        /// Dismiss the transfer, whose body is not needed, and wait for its end.
        case dismiss
        /// Raise the transfer to the lane of the flight.
        case raise
        /// Resume a paused transfer.
        case resumeTransfer
        /// Begin or continue to fill an object with the current response.
        case begin(Placement)
        /// Renew the stored object with the current response (304).
        case renew
        /// Compare the current response with the stored object (HEAD).
        case compareHead
        /// Set the length of the body from a 416.
        case learnEnd(Int64?)
        case discardObject
        /// Forget the object; there is no fill to end.
        case forgetObject
        /// Discard object and fill.
        case startOver
        case publish
        /// The body ends at its current offset.
        case markEnd
        /// Have the lists parsed; `listsRead` follows.
        case readLists
        /// The body is complete: end the fill.
        case complete(Completion)
        /// Release transfer and fill; what was received stays stored if the rest can be added
        /// later.
        ///
        /// A transfer that is not cancelled is dismissed, so that its connection is used again.
        indirect case close(cause: (any Error)?, cancels: Bool)
        /// Give waiters the object.
        case deliver([FlightWaiter])
        /// Indirect, since the payload is large and rare, and actions are copied when performed.
        indirect case answer([FlightWaiter], Answer)
        /// All attempts for the resource have failed, or a request has spent its budget.
        case noteGivenUp(isSpent: Bool)
        /// The origin asked for a pause before it is asked for the resource again.
        case noteRefusal(HTTPStatus, retryAfter: Interval)
        case noteOtherVersion
        case count(Counters.Name)
    }

    enum Completion {
        /// The transfer ended, and with it the body.
        case atEnd
        /// Every wanted byte has arrived, however the transfer ended.
        ///
        /// `isKnown` is false if too few bytes arrived to sniff the object's type.
        case atLength(isKnown: Bool)
    }
}
