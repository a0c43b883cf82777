import BucketClient

/// Reads small objects of the bucket, several at a time; lives on the upstream loop.
final class SmallReads {
    private unowned let level: SharedLevel
    /// The next one last.
    private var names: [String]
    private var inFlight = 0
    private var isDone = false
    private let each: (String, Result<BucketReply, BucketFailure>) -> Bool
    private let done: () -> Void

    private static let most = 8

    private init(
        _ level: SharedLevel, _ names: [String],
        each: @escaping (String, Result<BucketReply, BucketFailure>) -> Bool,
        done: @escaping () -> Void
    ) {
        self.level = level
        self.names = names.reversed()
        self.each = each
        self.done = done
    }

    /// Reads some objects.
    ///
    /// - Parameters:
    ///   - names: their names after the prefix of the location.
    ///   - level: the level; nothing is called once it is shut down.
    ///   - each: takes one answer, in any order; false leaves the others unread.
    ///   - done: called once, after the last answer.
    static func read(
        _ names: [String], from level: SharedLevel,
        each: @escaping (String, Result<BucketReply, BucketFailure>) -> Bool,
        done: @escaping () -> Void
    ) {
        let reads = SmallReads(level, names, each: each, done: done)
        guard !names.isEmpty else { return done() }
        for _ in 0..<min(most, names.count) { reads.next() }
    }

    private func next() {
        guard let name = names.popLast() else {
            if inFlight == 0, !isDone {
                isDone = true
                done()
            }
            return
        }
        inFlight += 1
        _ = level.bucket.read(name) { [self] result in
            guard !level.isShutDown else { return }
            inFlight -= 1
            if !each(name, result) { names = [] }
            next()
        }
    }
}
