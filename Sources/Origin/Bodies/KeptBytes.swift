import Numbers

/// What readers keep of a body that is not stored, while the rest of it is freed.
enum KeptBytes: Equatable {
    /// A window of this length each: another request brings them the rest.
    case windows(Int64)
    /// All that they need: nothing else brings it.
    ///
    /// The present bytes up to the watermark begin there. A reader before that was given up,
    /// and finds a broken body at its hole.
    case needed(from: Int64)
    /// What the slowest reader leaves them while another one waits for bytes.
    ///
    /// It requests the rest when it gets there, and sees a broken body where no response proves to
    /// be that rest. `stuck` are the positions whose readers have all not moved for as long as a
    /// flight waits; nil if another request brings readers the rest.
    case shares(UnstoredGap, stuck: Set<Int64>?)

    /// A length that no body has.
    static let everything: Int64 = 1 << 60

    /// Returns what stays for readers with these needs, and what a response is compared with.
    func ranges(for needs: [Range<Int64>]) -> [Range<Int64>] {
        needs.map { needed in
            let start = needed.lowerBound
            let end = min(needed.upperBound, start.addingSaturated(length(for: needed)))
            return max(0, start - StoredBody.mostCompared)..<end
        }
    }

    private func length(for needed: Range<Int64>) -> Int64 {
        let position = needed.lowerBound
        switch self {
        case .windows(let length): return length
        case .needed(let start): return position < start ? start - position : Self.everything
        case .shares(let gap, let stuck): return gap.length(for: needed, stuck: stuck)
        }
    }
}
