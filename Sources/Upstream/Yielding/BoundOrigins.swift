import Posix
import URISyntax

/// The origins from which what players wait for came over bounded windows lately: pure.
struct BoundOrigins: Sendable {
    private var notedAt: [Origin: Monotonic] = [:]
    private let life: Interval

    private static let most = 256

    /// Creates an empty set whose members are forgotten after a time.
    init(life: Interval) { self.life = life }

    /// Takes note that what players wait for comes from an origin over a bounded window.
    mutating func note(_ origin: Origin, at now: Monotonic) {
        notedAt[origin] = now
        guard notedAt.count > Self.most else { return }
        notedAt = notedAt.filter { now - $0.value < life }
        if notedAt.count > Self.most { notedAt = [origin: now] }
    }

    func contains(_ origin: Origin, at now: Monotonic) -> Bool {
        guard !notedAt.isEmpty, let noted = notedAt[origin] else { return false }
        return now - noted < life
    }

    mutating func removeAll() { notedAt = [:] }
}
