// Limits the frames that cost the server more than their sender: pure.
import Posix

/// An allowance of frames that do not request anything: PING, SETTINGS, PRIORITY, PRIORITY_UPDATE,
/// WINDOW_UPDATE, RST_STREAM and empty DATA, of frames that make the server reset a stream
/// (RFC 9113 section 10.5), and of fields that are decoded only to be dropped.
///
/// It grows with time and with use of the connection. Sent content also earns a separate number of
/// WINDOW_UPDATE frames: a player that reads a film at full speed sends two for every few KiB.
struct FrameAllowance {
    /// The initial and the maximum allowance.
    static let most = 1_000
    /// The increase per second.
    static let perSecond = 200
    /// The increase per complete response.
    static let perResponse = 8
    /// The cost of a reset: requests cost the server more than other frames.
    ///
    /// A player that leaves may reset all its streams together, and do so again.
    static let resetCost = 3
    /// The bytes of sent content that increase the allowance by one.
    static let contentBytes = 4_096
    /// The bytes of sent content that earn one WINDOW_UPDATE; Go's client sends two for each 4 KiB.
    static let windowBytes = 1_024
    /// The maximum number of WINDOW_UPDATE frames that content has earned.
    static let mostUpdates = 16_384

    /// The bytes of dropped fields that cost as much as one frame.
    static let fieldBytes = 64 << 10

    private var left = most
    private var updatesLeft = 0
    private var windowRest = 0
    private var fieldRest = 0
    private var bytes = 0
    private var grownAt: Monotonic

    init(now: Monotonic) { grownAt = now }

    /// Subtracts the cost of a frame.
    ///
    /// - Returns: false if the allowance is too small: the client misuses the connection.
    mutating func take(_ cost: Int, now: Monotonic) -> Bool {
        if left < cost { grow(now: now) }
        guard left >= cost else { return false }
        left -= cost
        return true
    }

    /// Subtracts the cost of a WINDOW_UPDATE, first from what content has earned.
    ///
    /// - Returns: false if the allowance is too small: the client misuses the connection.
    mutating func takeUpdate(now: Monotonic) -> Bool {
        guard updatesLeft > 0 else { return take(1, now: now) }
        updatesLeft -= 1
        return true
    }

    /// Subtracts the cost of fields that were decoded and dropped: a single byte of a field block
    /// can refer to a field of 4 KiB (RFC 7541 section 7.3).
    ///
    /// - Returns: false if the allowance is too small: the client misuses the connection.
    mutating func takeFields(_ count: Int, now: Monotonic) -> Bool {
        fieldRest += count
        let cost = fieldRest / Self.fieldBytes
        fieldRest %= Self.fieldBytes
        return take(cost, now: now)
    }

    private mutating func grow(now: Monotonic) {
        let passed = max(0, (now - grownAt).nanoseconds)
        let earned = min(Int64(Self.most), passed / (1_000_000_000 / Int64(Self.perSecond)))
        guard earned > 0 else { return }
        grownAt = now
        add(Int(earned))
    }

    /// Increases the allowance for a complete response.
    mutating func noteResponse() { add(Self.perResponse) }

    /// Increases the allowance for sent content.
    mutating func noteContent(_ count: Int) {
        windowRest += count
        updatesLeft = min(Self.mostUpdates, updatesLeft + windowRest / Self.windowBytes)
        windowRest %= Self.windowBytes
        bytes += count
        guard bytes >= Self.contentBytes else { return }
        add(bytes / Self.contentBytes)
        bytes %= Self.contentBytes
    }

    private mutating func add(_ count: Int) { left = min(Self.most, left + count) }
}
