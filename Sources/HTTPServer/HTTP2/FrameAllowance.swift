// How many frames that cost us more than their sender one connection may send: pure.
import Posix

/// An allowance of frames that ask for nothing: PING, SETTINGS, PRIORITY, PRIORITY_UPDATE,
/// WINDOW_UPDATE, RST_STREAM and empty DATA (RFC 9113 section 10.5).
///
/// It grows with time, and with the use that is made of the connection: a player that reads a film
/// at full speed sends a WINDOW_UPDATE for every few frames of content.
struct FrameAllowance {
    /// What a new connection has, and the most that one can have.
    static let most = 1_000
    /// What a second adds.
    static let perSecond = 200
    /// What a response that was sent whole adds.
    static let perResponse = 8
    /// What a reset takes off: requests cost us more than other frames.
    ///
    /// A player that leaves may reset all its streams at once, and do so again.
    static let resetCost = 3
    /// Bytes of content that were sent, which add one.
    static let contentBytes = 4_096

    private var left = most
    private var bytes = 0
    private var grownAt: Monotonic

    init(now: Monotonic) { grownAt = now }

    /// Takes a frame's cost off.
    ///
    /// - Returns: False where not as much is left: the client is not using the connection.
    mutating func take(_ cost: Int, now: Monotonic) -> Bool {
        if left < cost { grow(now: now) }
        guard left >= cost else { return false }
        left -= cost
        return true
    }

    private mutating func grow(now: Monotonic) {
        let passed = max(0, (now - grownAt).nanoseconds)
        let earned = min(Int64(Self.most), passed / (1_000_000_000 / Int64(Self.perSecond)))
        guard earned > 0 else { return }
        grownAt = now
        add(Int(earned))
    }

    /// A response was sent whole.
    mutating func noteResponse() { add(Self.perResponse) }

    /// So much content was sent.
    mutating func noteContent(_ count: Int) {
        bytes += count
        guard bytes >= Self.contentBytes else { return }
        add(bytes / Self.contentBytes)
        bytes %= Self.contentBytes
    }

    private mutating func add(_ count: Int) { left = min(Self.most, left + count) }
}
