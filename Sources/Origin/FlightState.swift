// What a flight can be in: each state carries what belongs to it.
import HTTP
import Model
import Posix

extension FlightMachine {
    /// What a request to the origin is for.
    enum Question: Equatable {
        case content
        /// Whether the body goes on after its last byte: the only way to tell the end of a body that
        /// ends with its connection from a cut (RFC 9112 section 8).
        case end
    }

    /// One request to the origin.
    struct Attempt: Equatable {
        var question = Question.content
        /// The bytes that are to be fetched.
        var wanted: Wanted
        /// Bytes before the wanted ones that are asked for, to be compared.
        var before: Int64 = 0
        /// Bytes behind the wanted ones that are asked for, to be compared.
        var behind: Int64 = 0

        /// The range that was asked for; nil for the whole body.
        var askedRange: Wanted? { wanted == .whole ? nil : wanted }

        /// The value of the Range field: the wanted bytes with those that are compared.
        var rangeField: String? {
            guard before + behind > 0, case .span(let start, let end) = wanted else {
                return wanted.rangeField
            }
            return Wanted.span(start: start - before, end: end.map { $0 + behind }).rangeField
                ?? "bytes=0-"
        }
    }

    /// An answer such as 503, whose body is not read.
    struct Refusal: Equatable {
        let status: HTTPStatus
        let retryAfter: Interval?
    }

    /// A response that is being compared with what is stored before anything of it is taken.
    struct Comparison: Equatable {
        /// Where the next byte of the response belongs.
        var position: Int64
        /// Where the bytes begin that have not been compared.
        let start: Int64
        let placement: Placement
    }

    /// Whether the first bytes of a body have told what it is.
    enum Sniffing: Equatable {
        case settled
        /// The first bytes, while they do not tell.
        case open(prefix: [UInt8])
    }

    /// Whether the origin may send.
    enum Flow: Equatable {
        case open
        /// Readers are far behind, or nobody reads.
        case held(since: Monotonic)
    }

    /// What is done about the body.
    enum Stage: Equatable {
        case receiving
        /// The body is here; lists are read elsewhere before its end is decided about.
        case readingLists
    }

    /// A response that fills the object.
    struct Filling: Equatable {
        let attempt: Attempt
        /// Since when bytes of this response may come.
        let since: Monotonic
        /// False where the end of the body would only be the end of the connection.
        let provesItsEnd: Bool
        /// True once an origin that was asked for a part has begun to send more.
        let sendsMore: Bool
        var stage = Stage.receiving
        var sniffing: Sniffing
        var flow = Flow.open
        /// The end of what the budget knows of the bytes of this transfer.
        var accountedEnd: Int64
    }

    enum State: Equatable {
        /// A request is to be sent: it waits only for what is stored to be looked at.
        case due(Question)
        /// A request is on its way, or in the queue for a slot; no head has come.
        case asking(Attempt)
        /// The head says that the origin cannot answer now; the transfer is about to end.
        case refused(Refusal, Question)
        /// The head of a short body waits for that body.
        case holding(Attempt, Placement)
        case comparing(Attempt, Comparison)
        case filling(Filling)
        case backingOff(Question)
        /// Other flights fill what a fetch ahead of players wants.
        case waitingForOthers
        case ended
    }

    /// What a flight does, for those who look at it from outside.
    enum Phase {
        case asking, filling, backingOff, ended
    }

    /// How the bytes of a body lie in the object.
    enum Layout: Equatable {
        case inPlace
        /// A part that is passed on without being understood: its bytes stand from the start of the
        /// object on, whatever their place in the body.
        case opaque
    }

    /// The object that this flight has begun to fill; it survives a broken transfer.
    struct Fill: Equatable {
        /// Where the first byte went.
        let firstOffset: Int64
        let layout: Layout
    }

    /// What the origin has shown about range requests.
    struct RangeSupport: OptionSet {
        let rawValue: UInt8
        /// The latest response said, or showed, that it answers range requests.
        static let taken = Self(rawValue: 1)
        /// A range was answered with the whole body.
        static let ignored = Self(rawValue: 2)
    }

    /// What has become of keeping the object.
    enum Keeping: Equatable {
        case possible
        /// The loss of the object's name was counted.
        case lost
        /// Storing failed before anybody was told of the object: the body is passed on only.
        case impossible
        case impossibleAndLost
    }
}
