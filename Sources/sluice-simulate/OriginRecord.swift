// What the CDN has seen of a file, and what a scene has it do beside the weather.

/// A request for a file, as the CDN saw it.
struct SeenRequest {
    let time: Int64
    let range: String?
    let ifRange: String?
}

/// What a file of a scene does that other files do not.
struct ScriptedOrigin {
    /// A 206 or 416 is sent whatever If-Range says, as some origins do.
    var ignoresIfRange = false
    /// The tag of all versions: an origin that does not change it, which is allowed of weak tags.
    var tag: String?
    /// Changes the answer to the request of a number, the first being 1.
    var change: (_ number: Int, _ answer: inout OriginAnswer) -> Void = { _, _ in }
}

extension OriginFile {
    /// Notes a request, and lets the script have its say.
    func record(_ head: OriginRequest, _ answer: inout OriginAnswer, at now: Int64) {
        seen.append(
            SeenRequest(time: now, range: head.fields["range"], ifRange: head.fields["if-range"]))
        script?.change(seen.count, &answer)
    }
}
