/// A workload of the comparison: its participants, repetitions and the work of a round.
struct Workload: Sendable {
    let name: String
    /// Whether proxies are started once for all rounds; otherwise each round starts a new one.
    var stands = false
    /// The maximum number of repetitions: counts do not vary, and some rounds take seconds.
    var most = Int.max
    /// The abilities that a peer must have.
    var needs: Set<Peer.Ability> = []
    /// Whether only the daemon can do it.
    var isOurs = false
    /// Whether a proxy must first pass a check that it serves the origin's bytes.
    var checksBytes = true
    /// Runs once after a proxy's start.
    var prepare: @Sendable (Round) throws -> Void = { _ in }
    let run: @Sendable (Round) throws -> Void

    /// All workloads, with the names and in the order of `Line.workloads`.
    static let all = [
        Workload(
            name: "large", stands: true, prepare: HitWorkloads.prepareLarge,
            run: HitWorkloads.large),
        Workload(
            name: "small", stands: true, prepare: HitWorkloads.prepareSmall,
            run: HitWorkloads.small),
        Workload(name: "cold", run: MissWorkloads.cold),
        Workload(name: "join", most: 3, run: MissWorkloads.join),
        Workload(name: "ranges", most: 3, needs: [.ranges], run: RangeWorkload.run),
        // A first request would change the idle memory.
        Workload(name: "memory", most: 3, checksBytes: false, run: MemoryWorkload.run),
        Workload(name: "failure", most: 1, run: FailureWorkload.run),
        Workload(name: "objects", most: 1, run: ObjectsWorkload.run),
        Workload(name: "playlist", stands: true, isOurs: true, run: PlaylistWorkload.run),
        Workload(
            name: "secure", most: 3, needs: [.secure], checksBytes: false,
            run: SecureWorkload.run),
    ]
}
