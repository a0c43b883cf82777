/// The workloads of the comparison: who takes part, how often, and what a round does.
struct Workload: Sendable {
    let name: String
    /// Whether proxies are started once and stay; otherwise each round has a fresh one.
    var stands = false
    /// The most repetitions; counts do not vary, and some rounds take seconds.
    var most = Int.max
    /// What a peer has to be able to do.
    var needs: Set<Peer.Ability> = []
    /// Whether the daemon alone can do it.
    var isOurs = false
    /// Whether a proxy first has to prove that it hands out the origin's bytes.
    var checksBytes = true
    /// Done once after a proxy's start.
    var prepare: @Sendable (Round) throws -> Void = { _ in }
    let run: @Sendable (Round) throws -> Void

    /// All of them, by the names and in the order of `Line.workloads`.
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
        // A first request changes what idle memory is.
        Workload(name: "memory", most: 3, checksBytes: false, run: MemoryWorkload.run),
        Workload(name: "failure", most: 1, run: FailureWorkload.run),
        Workload(name: "objects", most: 1, run: ObjectsWorkload.run),
        Workload(name: "playlist", stands: true, isOurs: true, run: PlaylistWorkload.run),
        Workload(
            name: "secure", most: 3, needs: [.secure], checksBytes: false,
            run: SecureWorkload.run),
    ]
}
