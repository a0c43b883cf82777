/// What `/api/origins` says of a shared store.
struct SharedStoreLine: Decodable {
    let store: String
    /// "up" while it is used.
    let state: String
    let reason: String?
    /// What fails there besides; nil from an earlier version.
    let failing: [Failing]?

    struct Failing: Decodable {
        let task: String
        let reason: String
    }

    /// What fails, with the reason, one text each.
    var failures: [String] { (failing ?? []).map { "\($0.task) fail: \($0.reason)" } }
}
