/// What stories about commands and the admin API need in addition.
extension Story {
    /// A command to the daemon of this story.
    package func ask(_ arguments: String...) throws -> Tool.Result {
        try Tool.run(
            [DaemonProcess.builtBinary()] + arguments + ["--daemon", daemon.baseURL])
    }

    /// A command on the cache folder of this story.
    package func onFolder(_ arguments: String...) throws -> Tool.Result {
        try Tool.run(
            [DaemonProcess.builtBinary()] + arguments + ["--cache-dir", cacheFolder])
    }

    /// A page of the admin API, as text.
    package func api(_ target: String, method: String = "GET") throws -> String {
        try player().get("/api/\(target)", method: method).text
    }
}

/// Runs `sluice` with arguments to its end.
package func sluice(
    _ arguments: String..., environment: [String] = []
) throws -> Tool.Result {
    try Tool.run(["env"] + environment + [DaemonProcess.builtBinary()] + arguments)
}

/// The raw values of every member of one name in a JSON text, in order.
package func members(_ name: String, in json: String) -> [String] {
    json.ranges(of: "\"\(name)\":").map { found in
        let rest = json[found.upperBound...]
        guard rest.first == "\"" else {
            return String(rest.prefix { !",}]".contains($0) })
        }
        return String(rest.dropFirst().prefix { $0 != "\"" })
    }
}
