// The states of a flight; each state carries its own data.
import HTTP
import Model
import Posix

extension FlightMachine {
    /// The purpose of a request to the origin.
    enum Question: Equatable {
        case content
        /// Whether the body continues after its last byte: the only way to distinguish the end of a
        /// body that is delimited by its connection from a truncated one (RFC 9112 section 8).
        case end
    }

    /// One request to the origin.
    struct Attempt: Equatable {
        var question = Question.content
        /// The bytes to fetch.
        var wanted: Wanted
        /// Bytes before the wanted ones that are requested for comparison.
        var before: Int64 = 0
        /// Bytes after the wanted ones that are requested for comparison.
        var behind: Int64 = 0

        /// The requested range without the compared bytes; nil for the whole body.
        var askedRange: Wanted? { wanted == .whole ? nil : wanted }

        /// The value of the Range field: the wanted bytes and the compared ones.
        var rangeField: String? {
            guard before + behind > 0, case .span(let start, let end) = wanted else {
                return wanted.rangeField
            }
            return Wanted.span(start: start - before, end: end.map { $0 + behind }).rangeField
                ?? "bytes=0-"
        }
    }

    /// What the requests of a flight leave out; each case names the reason.
    struct Omissions: OptionSet {
        let rawValue: UInt8
        /// A parent has failed, so that the origin is asked.
        static let parents = Self(rawValue: 1)
        /// The second level was asked, or must not be.
        static let sharedLevel = Self(rawValue: 2)
        /// A 304 validated nothing that is stored.
        static let conditions = Self(rawValue: 4)
        /// A text came with a content coding that libcurl does not know.
        static let decoding = Self(rawValue: 8)
        /// The origin may have refused it since it allows one transfer at a time.
        static let company = Self(rawValue: 16)
        /// The servers of the origin may have validators of their own for the same bytes.
        static let rangeCondition = Self(rawValue: 32)
    }

    /// A response such as 503, whose body is not read.
    struct Refusal: Equatable {
        let status: HTTPStatus
        let retryAfter: Interval?
    }

    /// A response that is compared with stored bytes before any of it is written.
    struct Comparison: Equatable {
        /// The offset of the response's next byte.
        var position: Int64
        /// The offset of the first byte that is not compared.
        let start: Int64
        let placement: Placement
    }

    /// Whether the first bytes of a body have decided its type.
    enum Sniffing: Equatable {
        case settled
        /// The first bytes, while they are not sufficient.
        case open(prefix: [UInt8])
    }

    /// Whether the transfer may deliver bytes.
    enum Flow: Equatable {
        case open
        /// Paused: readers are far behind, or there are none.
        case paused(since: Monotonic)
    }

    /// The stage of the body.
    enum Stage: Equatable {
        case receiving
        /// The body is complete; lists are parsed on another thread before its end is decided.
        case readingLists
    }

    /// A response that fills the object.
    struct Filling: Equatable {
        let attempt: Attempt
        /// When this response began.
        let since: Monotonic
        /// False if only closing the connection delimits the body.
        let provesItsEnd: Bool
        /// True if the origin sends more than the requested part.
        let sendsMore: Bool
        var stage = Stage.receiving
        var sniffing: Sniffing
        var flow = Flow.open
        /// The end of this transfer's bytes that are counted in the budget.
        var accountedEnd: Int64
    }

    enum State: Equatable {
        /// A request is due; only the lookup of what is stored precedes it.
        case due(Question)
        /// A request was sent, or waits for a slot; no head has arrived.
        case asking(Attempt)
        /// The head says that the origin cannot serve this now; the transfer is about to end.
        case refused(Refusal, Question)
        /// The head of a short body is held until the body has arrived.
        case holding(Attempt, Placement)
        case comparing(Attempt, Comparison)
        case filling(Filling)
        case backingOff(Question)
        /// Other flights fill what an ahead fetch wants.
        case waitingForOthers
        case ended
    }

    /// What a flight is doing, for other types.
    enum Phase {
        case asking, filling, backingOff, ended
    }

    /// How the bytes of a body are placed in the object.
    enum Layout: Equatable {
        case inPlace
        /// A part that is passed on uninterpreted: its bytes are written from the start of the
        /// object on, whatever their position in the body.
        case opaque
    }

    /// Whether a body has an end.
    enum Extent: Equatable {
        case bounded
        /// It has no length, and its speed has not shown yet whether it is a live stream.
        case undecided
        /// A live stream: another connection continues it, from whatever the origin sends then.
        case endless
    }

    /// The object that this flight has begun to fill; it survives a failed transfer.
    struct Fill: Equatable {
        /// The offset of the first byte.
        let firstOffset: Int64
        let layout: Layout
    }

    /// What the origin has shown of its support for range requests.
    struct RangeSupport: OptionSet {
        let rawValue: UInt8
        /// The latest response stated or proved support for range requests.
        static let taken = Self(rawValue: 1)
        /// A range was answered with the whole body.
        static let ignored = Self(rawValue: 2)
    }
}
