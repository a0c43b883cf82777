package import AccessLogFormat

/// Reads the lines of an access log, once there are this many or the patience is over.
///
/// A line is written after its response, which the player may see before.
package func accessLines(_ path: String, _ count: Int) -> [AccessLine] {
    var lines: [AccessLine] = []
    _ = eventually {
        let text = String(decoding: (try? readFile(path)) ?? [], as: UTF8.self)
        lines = text.split(separator: "\n").compactMap { line in
            AccessLine(line.split(separator: " ").map(String.init))
        }
        return lines.count >= count
    }
    return lines
}
