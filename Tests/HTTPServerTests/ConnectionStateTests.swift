@testable import HTTPServer
import Posix
import Reactor
import Testing

/// The state of a connection as a value.
struct ConnectionStateTests {
    private let limits = ServerLimits()
    private let start = Monotonic(nanoseconds: 1_000_000_000)

    private func state(_ phases: ConnectionState.Phase...) -> ConnectionState {
        var state = ConnectionState(now: start, limits: limits)
        for phase in phases { state.enter(phase, now: start, limits: limits) }
        return state
    }

    @Test func `the time for a head runs from its first byte and is not extended`() {
        var state = state(.head)
        let deadline = state.deadline
        state.enter(.head, now: start + .milliseconds(5000), limits: limits)
        #expect(state.deadline == deadline)
        #expect(deadline == start + limits.headTimeout)
        #expect(state.expiry == .answerTimeout)
    }

    @Test func `the time without a request follows from the deadline of the phase`() {
        func expect(_ found: (Idleness, Monotonic)?, _ idleness: Idleness?, since: Monotonic?) {
            #expect(found?.0 == idleness && found?.1 == since)
        }
        let later = start + .milliseconds(5000)
        var state = state()
        expect(state.idleSince(limits: limits), .unused, since: start)
        state.enter(.handling, now: start, limits: limits)
        expect(state.idleSince(limits: limits), nil, since: nil)
        state.enter(.idle, now: later, limits: limits)
        expect(state.idleSince(limits: limits), .served, since: later)

        var multiplexed = HTTP2ConnectionState(now: start, limits: limits)
        expect(multiplexed.idleSince(limits: limits), .unused, since: start)
        multiplexed.enter(.idle, now: later, limits: limits)
        expect(multiplexed.idleSince(limits: limits), .unused, since: later)
        multiplexed.beginBlock(of: 1, now: later, limits: limits)
        expect(multiplexed.idleSince(limits: limits), nil, since: nil)
        multiplexed.endBlock(of: 1)
        multiplexed.enter(.idle, now: later, limits: limits)
        expect(multiplexed.idleSince(limits: limits), .served, since: later)
    }

    @Test func `a usual request does not change the epoll interest`() {
        let fresh = state().interest
        #expect(state(.handling).interest == fresh)
        #expect(state(.handling, .sending).interest == fresh)
        #expect(state(.handling, .sending, .idle).interest == fresh)
    }

    @Test func `input during a response is not watched until the response is complete`() {
        var state = state(.handling)
        state.pauseInput(peerClosed: false)
        #expect(state.interest == [.peerClosed])
        state.pauseInput(peerClosed: true)
        #expect(state.interest == [])
        state.enter(.sending, now: start, limits: limits)
        #expect(state.interest == [])
        state.enter(.idle, now: start, limits: limits)
        #expect(state.interest == [.readable, .peerClosed])
    }

    @Test func `unsent TLS records wait for room in the socket, except while lingering`() {
        #expect(state(.head).interestWithRecords == [.readable, .peerClosed, .writable])
        #expect(state(.handling, .sending).interestWithRecords.contains(.writable))
        let lingering = state(.handling, .sending, .lingering)
        #expect(lingering.interestWithRecords == lingering.interest)
        #expect(lingering.interest == [.readable, .peerClosed])
    }

    @Test func `a blocked response does not time out while it makes progress`() {
        var state = state(.handling, .sending)
        #expect(state.deadline == nil)
        state.block(madeProgress: false, now: start, limits: limits)
        #expect(state.interest.contains(.writable))
        let later = start + .milliseconds(1000)
        state.block(madeProgress: false, now: later, limits: limits)
        #expect(state.deadline == start + limits.writeTimeout)
        state.block(madeProgress: true, now: later, limits: limits)
        #expect(state.deadline == later + limits.writeTimeout)
        #expect(state.expiry == .abort)
    }

    @Test func `the client of a full socket is kept as long as it reads between deadlines`() {
        var state = state(.handling, .sending)
        state.block(madeProgress: true, now: start, limits: limits)
        func due(_ count: Int64) -> Monotonic {
            start + Interval(nanoseconds: count * limits.writeTimeout.nanoseconds)
        }
        func keeps(unread: Int, at now: Monotonic) -> Bool {
            state.extendWriting(unread: unread, now: now, limits: limits)
        }
        #expect(!keeps(unread: 900, at: start))
        #expect(keeps(unread: 900, at: due(1)))
        #expect(state.deadline == due(2))
        #expect(keeps(unread: 899, at: due(2)))
        // Bytes that the socket accepts begin the comparison anew: there is more to read.
        state.block(madeProgress: true, now: due(2), limits: limits)
        #expect(keeps(unread: 5000, at: due(3)))
        #expect(!keeps(unread: 5000, at: due(4)))
    }

    @Test func `a client that reads but sends no content is not kept`() {
        var state = state(.handling, .sending)
        state.wantContent(now: start, limits: limits)
        let due = start + limits.writeTimeout
        state.block(madeProgress: true, now: start, limits: limits)
        let isKept = state.extendWriting(unread: 900, now: due, limits: limits)
        #expect(!isKept)
    }

    @Test func `a body that is discarded for too long leads to lingering`() {
        #expect(state(.handling, .sending, .body).expiry == .linger)
        #expect(state(.handling, .sending, .lingering).expiry == .close)
        #expect(state().expiry == .close && state(.idle).expiry == .close)
    }

    @Test func `a waiting source has no deadline`() {
        var state = state(.handling, .sending)
        state.block(madeProgress: true, now: start, limits: limits)
        state.unblock()
        #expect(state.deadline == nil)
        #expect(!state.interest.contains(.writable))
    }

    @Test func `a blocked interim response does not change the time for a body`() {
        var state = state(.handling)
        state.wantContent(now: start, limits: limits)
        state.block(madeProgress: true, now: start + .milliseconds(9000), limits: limits)
        #expect(state.deadline == start + limits.bodyTimeout)
        #expect(state.expiry == .answerTimeout)
    }

    @Test func `each step of content has a timeout, which counts while content is awaited`() {
        var state = state(.handling)
        state.wantContent(now: start, limits: limits)
        #expect(state.isContentWanted && state.interest.contains(.readable))
        state.contentArrived(10, now: start + .milliseconds(9000))
        #expect(state.deadline == nil && !state.isContentWanted)
        let later = start + .milliseconds(100_000)
        state.wantContent(now: later, limits: limits)
        // A part of the step's time was used before.
        #expect(state.deadline == later + .milliseconds(21_000))
        state.contentArrived(ContentStep.bytes, now: later)
        state.wantContent(now: later, limits: limits)
        #expect(state.deadline == later + limits.bodyTimeout)
        state.contentEnded()
        #expect(state.deadline == nil)
    }
}
