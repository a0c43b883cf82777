/// The format of the daemon's log.
package enum LogFormat: String, Sendable {
    /// Lines for reading.
    case text
    /// One JSON object per line.
    case json
}
