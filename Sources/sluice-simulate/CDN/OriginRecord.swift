// The requests the CDN has seen for a file, and the behaviour that a scene scripts for it.

/// A request for a file, as the CDN saw it.
struct SeenRequest {
    let time: Int64
    let range: String?
    let ifRange: String?
}

/// Scripted behaviour of a scene's file.
struct ScriptedOrigin {
    /// A 206 or 416 is sent whatever If-Range says, as some origins do.
    var ignoresIfRange = false
    /// One entity tag for all versions: an origin may keep a weak tag unchanged.
    var tag: String?
    /// Changes the answer to the request of a number, the first being 1.
    var change: (_ number: Int, _ answer: inout OriginAnswer) -> Void = { _, _ in }
}

extension OriginFile {
    /// Records a request and applies the script.
    func record(_ head: OriginRequest, _ answer: inout OriginAnswer, at now: Int64) {
        seen.append(
            SeenRequest(time: now, range: head.fields["range"], ifRange: head.fields["if-range"]))
        script?.change(seen.count, &answer)
    }
}
